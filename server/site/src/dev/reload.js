// Reloads the page when a file of the site has changed. Only `millpond serve --dev` has this.
(() => {
  const { state, post } = document.currentScript.dataset;
  const changes = new URL("/_millpond/dev/changes", location.origin);
  let waiting;

  const visible = () => document.visibilityState === "visible";
  const pause = () => new Promise((over) => setTimeout(over, 1000));
  const shown = () =>
    new Promise((over) => {
      const look = () => visible() && (document.removeEventListener("visibilitychange", look), over());
      document.addEventListener("visibilitychange", look);
    });

  function changed() {
    if (post === undefined) return location.reload();
    // A reload would send the form again.
    document.querySelector(".changed")?.removeAttribute("hidden");
  }

  async function watch() {
    for (;;) {
      // A hidden page would keep one of the few connections that a browser has for a server.
      if (!visible()) await shown();
      try {
        waiting = new AbortController();
        const answer = await fetch(`${changes}?${state}`, { cache: "no-store", signal: waiting.signal });
        if (answer.ok && (await answer.text()) !== state) return changed();
        if (!answer.ok) await pause();
      } catch {
        await pause();
      }
    }
  }

  document.addEventListener("visibilitychange", () => visible() || waiting?.abort());
  addEventListener("pagehide", () => waiting?.abort());
  addEventListener("pageshow", (event) => event.persisted && changed());
  watch();
})();
