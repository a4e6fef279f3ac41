"""One visit to a page, with everything that a careful host would want to know about it."""

from urllib.parse import urlsplit

from playwright.sync_api import Page, Request, Response, Route

INLINE = ("data:", "blob:")


class Visit:
    """Opens `url` and waits until it has loaded, or with `settle` until nothing is requested any more.

    `page` is the playwright page; `complaints` are errors and warnings of the console, uncaught
    exceptions, failed requests and answers of 400 or more; `foreign` are requests that would have left
    the host, or, for a page in a folder, the disk. They are stopped, not sent.
    """

    def __init__(self, page: Page, url: str, *, settle: bool = False) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.responses: list[Response] = []
        self._home = urlsplit(url)[:2]
        page.context.route("**/*", self._route)
        page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        page.set_default_timeout(5_000)
        page.goto(url)
        if settle:
            page.wait_for_load_state("networkidle")

    def _route(self, route: Route) -> None:
        if self._is_foreign(route.request):
            route.abort()
        else:
            route.continue_()

    def _is_foreign(self, request: Request) -> bool:
        foreign = not request.url.startswith(INLINE) and urlsplit(request.url)[:2] != self._home
        if foreign:
            self.foreign.append(request.url)
        return foreign

    def _failed(self, request: Request) -> None:
        self.complaints.append(f"failed: {request.url}")

    def _answered(self, response: Response) -> None:
        self.responses.append(response)
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")

    def weights(self) -> dict[str, int]:
        """Bytes received per address, compressed as they came over the wire, images left out."""
        return {
            urlsplit(response.url).path: response.request.sizes()["responseBodySize"]
            for response in self.responses
            if response.request.resource_type != "image"
        }
