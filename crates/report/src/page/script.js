// Shows the value of the point that is nearest to the pointer, or that the keyboard is at.
(() => {
  const tip = document.querySelector(".tip");
  const reach = 28;
  let shown = null;

  function show(point) {
    if (shown === point) return;
    shown?.classList.remove("on");
    shown = point;
    tip.hidden = !point;
    if (!point) return;
    point.classList.add("on");
    tip.textContent = point.getAttribute("aria-label");
    place();
  }

  // Beside the point, also where the page moves under it.
  function place() {
    if (!shown) return;
    const at = shown.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, at.x + at.width / 2 - box.width / 2), document.documentElement.clientWidth - box.width - 8);
    const above = at.y - box.height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 4 ? at.bottom + 8 : above}px`;
  }

  for (const svg of document.querySelectorAll("svg.chart")) {
    const points = [...svg.querySelectorAll(".pt")];
    for (const point of points) {
      // The browser's own hint would cover this one.
      const title = point.querySelector("title");
      point.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    svg.addEventListener("pointermove", (event) => {
      let nearest = null;
      let distance = reach;
      for (const point of points) {
        const box = point.getBoundingClientRect();
        const away = Math.hypot(
          Math.max(box.left - event.clientX, 0, event.clientX - box.right),
          Math.max(box.top - event.clientY, 0, event.clientY - box.bottom),
        );
        // Of two under the pointer, the later one is on top.
        if (away < distance || (away === 0 && distance === 0)) [nearest, distance] = [point, away];
      }
      show(nearest);
    });
    svg.addEventListener("pointerleave", () => show(null));
    // One stop for the tab key; arrows go from point to point.
    svg.tabIndex = 0;
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) show(points[0] ?? null); });
    svg.addEventListener("blur", () => show(null));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || points.length === 0) return;
      event.preventDefault();
      const at = points.indexOf(shown);
      show(points[(at + step + points.length) % points.length]);
    });
  }
  addEventListener("scroll", place, { passive: true });
})();
