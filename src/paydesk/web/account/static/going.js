// Goes on to the other cell without another click, once: who comes back here stays.
const form = document.querySelector("form[data-go]");
const [visited] = performance.getEntriesByType("navigation");
if (form && visited?.type !== "back_forward") form.requestSubmit();
