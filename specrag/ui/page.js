() => {
  // One polite status line for screen readers: the element that stays, not its content, which is replaced.
  const status = document.getElementById("sr-status");
  if (status) {
    status.setAttribute("role", "status");
    status.setAttribute("aria-live", "polite");
  }
  // Gradio's accordions do not say whether they are open.
  const tell = () => document.querySelectorAll("button.label-wrap").forEach((button) =>
    button.setAttribute("aria-expanded", String(button.classList.contains("open"))));
  new MutationObserver(tell).observe(document.body, { subtree: true, childList: true, attributeFilter: ["class"] });
  tell();
}
