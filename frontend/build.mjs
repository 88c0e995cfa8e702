// Bundles the page into the folder that the web surface serves: one script, one style sheet, the document and an icon.
import { cp, mkdir, rm } from "node:fs/promises";
import { build } from "esbuild";

const out = new URL("../src/sentinel_rag/surfaces/web/page/", import.meta.url).pathname;

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  entryPoints: [
    { in: "src/main.tsx", out: "page" },
    { in: "src/page.css", out: "page" },
  ],
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "inline",
  logLevel: "warning",
});

await cp("src/icon.svg", `${out}icon.svg`);
// Last: a server takes the page for built once its document is there.
await cp("src/index.html", `${out}index.html`);
