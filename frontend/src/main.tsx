// The page's entry: puts the application into the document and owns nothing else.
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme } from "./preferences.ts";

applyTheme();
const place = document.getElementById("page");
if (place !== null) {
  render(<App oidc={place.dataset.oidc === "yes"} />, place);
}
