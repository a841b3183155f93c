() => {
  // One polite status line for screen readers: the element that stays, not its content, which is replaced.
  const status = document.getElementById("sr-status");
  if (status) {
    status.setAttribute("role", "status");
    status.setAttribute("aria-live", "polite");
  }
}
