
// Keeps a live page up to date: told of a newer state, it asks for the page and changes what differs.
const own = document.querySelector("script[data-tag][src*='/.millpond/live.']");
const policy = window.trustedTypes?.createPolicy("millpond", { createHTML: (text) => text });
// A stream without a byte for two and a half heartbeats is dead, or something keeps it back.
const SILENCE = 50000;
const POLL = 20000;
let source, watch, asking, again, polling, silences = 0, leaving = 0, heard = 0;

const isLeaving = () => Date.now() < leaving;
const isHidden = () => document.visibilityState === "hidden";

function open() {
  close();
  if (isHidden() || polling) return;
  const page = encodeURIComponent(location.pathname + location.search);
  source = new EventSource(`/.millpond/live?page=${page}&seen=${own.dataset.tag}`);
  heard = Date.now();
  const hears = () => ((heard = Date.now()), (silences = 0));
  source.onopen = () => (heard = Date.now());
  source.addEventListener("beat", hears);
  source.onmessage = (event) => {
    hears();
    // The server says within how many milliseconds all who look are to ask.
    asking ??= setTimeout(update, Math.random() * event.data);
  };
  source.addEventListener("gone", () => {
    close();
    update(true);
  });
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) {
      close();
      again = setTimeout(open, 5000 + Math.random() * 5000);
    }
  };
  watch = setInterval(() => {
    if (Date.now() - heard < SILENCE) return;
    if (silences++ < 1) return open();
    close();
    console.info("millpond: the stream of this page is silent, so the page is asked for every 20 s");
    polling = setInterval(() => isHidden() || update(), POLL);
  }, 5000);
}

function close() {
  source?.close();
  source = undefined;
  clearInterval(watch);
  clearTimeout(again);
}

async function update(isGone) {
  clearTimeout(asking);
  asking = undefined;
  try {
    const answer = await fetch(location.pathname + location.search, {
      headers: { "If-None-Match": `"${own.dataset.tag}"`, Accept: "text/html" },
      cache: "no-store",
      redirect: "manual",
    });
    if (answer.ok) show(await answer.text());
    else if (answer.status !== 304 && (isGone || answer.status === 0)) lose();
    if (isGone && (answer.ok || answer.status === 304)) again = setTimeout(open, 1000);
  } catch {
    // The stream, or the next poll, tells again.
    asking ??= setTimeout(update, 2000 + Math.random() * 3000);
  }
}

// The page is not this visitor's any more: what was typed stays until it is sent, or the page is left.
function lose() {
  close();
  const isTyped = [...document.querySelectorAll("input, textarea, select")].some(isChanged);
  if (!document.dispatchEvent(new Event("millpond:gone", { cancelable: true })) || isTyped) return;
  location.reload();
}

const isChanged = (control) =>
  control.localName === "select"
    ? [...control.options].some((option) => option.selected !== option.defaultSelected)
    : control.value !== control.defaultValue || control.checked !== control.defaultChecked;

function show(text) {
  if (isLeaving()) return;
  const next = new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
  const tag = next.querySelector("script[data-tag][src*='/.millpond/live.']")?.dataset.tag;
  // Another page, or one of another version of the script.
  if (!tag) return lose();
  morphDocument(document, next, {
    preserveChanges: true,
    beforeNodeVisited: (from, to) => !isKept(from, to),
    beforeNodeRemoved: (node) => !node.dataset || !("liveKeep" in node.dataset),
    beforeAttributeUpdated: (element, name) =>
      !(name === "open" && (element.localName === "details" || element.localName === "dialog")),
  });
  own.dataset.tag = tag;
  document.dispatchEvent(new Event("millpond:changed"));
}

function isKept(from, to) {
  if (!from.dataset) return false;
  if ("liveKeep" in from.dataset || from === own) return true;
  // What plays, plays on.
  return (from.localName === "video" || from.localName === "audio") && from.src === to.src;
}

// Nothing changes under a visitor who is on the way to another page.
const leave = (event) => (leaving = event.defaultPrevented ? 0 : Date.now() + 10000);
addEventListener("submit", (event) => setTimeout(() => leave(event)));
addEventListener("beforeunload", leave);
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => {
  leaving = 0;
  if (event.persisted) open();
});
document.addEventListener("visibilitychange", () => {
  if (isHidden()) close();
  else if (!source) open();
});
// A reconnect after sleep: the browser says that the network is back.
addEventListener("online", open);
open();
