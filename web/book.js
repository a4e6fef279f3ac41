"use strict";
(() => {
  // Makes every box that scrolls sideways reachable by keyboard, and only while it does scroll.
  const BOXES = {
    ".pst-scrollable-table-container": "Table, scrolls sideways",
    ".math-scroll": "Formula, scrolls sideways",
    ".live-control": "Table, scrolls sideways",
    ".bd-article pre": "Code or output, scrolls sideways",
  };

  function mark() {
    for (const [selector, label] of Object.entries(BOXES)) {
      for (const box of document.querySelectorAll(selector)) {
        if (box.scrollWidth > box.clientWidth + 1) {
          box.tabIndex = 0;
          box.setAttribute("role", "group"); // a region would be a landmark, and those need unique names
          box.setAttribute("aria-label", label);
        } else if (box.getAttribute("aria-label") === label) {
          for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
        }
      }
    }
  }

  // Paper cannot be clicked: open what is folded while printing, and fold it again afterwards.
  const opened = new Set();
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll(".bd-article details:not([open])")) {
      opened.add(fold);
      fold.open = true;
    }
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    opened.clear();
  });

  addEventListener("load", mark);
  addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true); // a <details> that opens shows new boxes

  // Search quotes the pages it finds, which a browser forbids for files in a folder: leave the quotes out.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
