// How search results are ordered: Sphinx's own weights, and then a page gains with each word of the question that
// stands in its title. Without it every page with one of the words in a heading counts the same.
var Scorer = {
  score: ([, title, , , score]) => {
    const asked = new URLSearchParams(window.location.search).get("q") ?? "";
    const words = asked.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
    const inTitle = title.toLowerCase();
    return score + 5 * words.filter((word) => inTitle.includes(word)).length;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
