// The filters of the ledger. Without this script every row shows and the filters stay hidden.
"use strict";
(() => {
  const form = document.getElementById("ledger-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("#ledger > li")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const shown = form.querySelector(".ledger-shown");
  const reset = form.querySelector(".ledger-reset");

  // A value of the filter "place" is a source ("B") or a source and a section ("B|History").
  const fits = (row, name, value) =>
    row.dataset[name] === value || (name === "place" && row.dataset.place.startsWith(`${value}|`));

  function filter() {
    const wanted = [...new FormData(form)].filter(([, value]) => value !== "");
    const words = (wanted.find(([name]) => name === "words")?.[1] ?? "").toLowerCase().split(/\s+/);
    const choices = wanted.filter(([name]) => name !== "words");
    let count = 0;
    rows.forEach((row, i) => {
      const fit =
        choices.every(([name, value]) => fits(row, name, value)) &&
        words.every((word) => texts[i].includes(word));
      row.hidden = !fit;
      count += fit;
    });
    reset.disabled = wanted.length === 0;
    shown.textContent = `${count} of ${rows.length} claims shown`; // role="status" announces it
  }

  // A link to a row must work even when a filter hides that row.
  function showTarget() {
    const row = rows.find((item) => `#${item.id}` === location.hash);
    if (!row?.hidden) return;
    form.reset();
    filter();
    row.scrollIntoView();
  }

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter)); // the fields are cleared after the event
  addEventListener("hashchange", showTarget);
  form.hidden = false;
  filter(); // a browser may have kept choices over a reload
  showTarget();
})();
