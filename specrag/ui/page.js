() => {
  // One polite status line for screen readers; gradio cannot set the attribute itself.
  const status = document.getElementById("sr-status");
  if (status) {
    status.setAttribute("role", "status");
    status.setAttribute("aria-live", "polite");
  }
}
