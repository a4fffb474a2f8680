// Makes the portal's pages nicer; everything also works without it. Texts come from the page.

/** Ask for the result of a check until it is there, ever more slowly. */
async function poll(place) {
  for (let pause = 500; ; pause = Math.min(pause * 1.3, 5000)) {
    await new Promise((done) => setTimeout(done, pause));
    try {
      const answer = await fetch(place.dataset.status, { headers: { Accept: "application/json" } });
      const { state, url } = await answer.json();
      if (state === "done") return location.assign(url);
    } catch {
      // The next round may go better.
    }
  }
}

for (const form of document.querySelectorAll("form[data-once]")) {
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
    form.classList.add("working");
  });
  // The back button may bring this very page back, already sent.
  addEventListener("pageshow", () => {
    sent = false;
    form.classList.remove("working");
  });
}

const checking = document.getElementById("checking");
if (checking) poll(checking);
