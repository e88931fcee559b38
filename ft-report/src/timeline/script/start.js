// @ts-check
import { Timeline } from "./main.js";

const section = document.getElementById("timeline");
if (section) {
  new Timeline(section).begin().catch((error) => {
    const status = section.querySelector(".tl-status");
    if (status) status.textContent = `The timeline could not be drawn: ${error}. It needs a browser of 2023 or newer.`;
    console.error(error);
  });
}
