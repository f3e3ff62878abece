/**
 * Makes the deliverables:
 *   node build.mjs            dist/svc             one JavaScript file for a host that has Node.js (and dist/svclet, a link)
 *   node build.mjs --binary   dist/svc-linux-ARCH  one executable with its own Node.js, for this and, where its runtime
 *                                                  is installed, the other architecture
 * Both are reproducible: the same sources and lockfile give the same bytes.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const root = import.meta.dirname;
const dist = join(root, "dist");

/** The prebuilt LevelDB addon of each architecture (glibc). */
const addons = {
  x64: "node_modules/classic-level/prebuilds/linux-x64/classic-level.node",
  arm64: "node_modules/classic-level/prebuilds/linux-arm64/classic-level.armv8.node",
};

/** New objects are small and die young here: a small young generation nearly halves the resident memory. */
const nodeOptions = ["--max-semi-space-size=4"];

/**
 * The first two lines are read by /bin/sh, which finds Node.js, and skipped by Node.js, for which the second is a string
 * and a comment. SVC_NODE names a Node.js that is not on the PATH.
 */
const header = `#!/bin/sh
":" //; svc_node=\${SVC_NODE:-node}; command -v "$svc_node" >/dev/null 2>&1 || { echo "svc: no Node.js found: put node 22.19 or newer on the PATH, name it in SVC_NODE, or use the executable that brings its own" >&2; exit 127; }; exec "$svc_node" ${nodeOptions.join(" ")} "$0" "$@"
`;

const oldNode = `
{ const [a, b] = process.versions.node.split(".").map(Number);
  if (a < 22 || (a === 22 && b < 19)) { console.error("svc: needs Node.js 22.19 or newer, this is " + process.versions.node + " (" + process.execPath + "); name another in SVC_NODE"); process.exit(1); } }
const svcImportMetaUrl = require("node:url").pathToFileURL(__filename).href;
`;

/** In the place of classic-level's loader: the addon's bytes and the function that loads them. */
function embedAddon(arch) {
  return {
    name: "embed-addon",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\/binding$/ }, ({ importer }) =>
        importer.includes("classic-level") ? { path: "binding", namespace: "addon" } : undefined,
      );
      onLoad({ filter: /.*/, namespace: "addon" }, () => ({
        contents: `import { loadAddon } from "./src/storage/level/native.ts";
          import bytes from "./${addons[arch]}";
          module.exports = loadAddon(bytes);`,
        resolveDir: root,
        loader: "js",
      }));
      onLoad({ filter: /classic-level.*\.node$/ }, ({ path }) => ({ contents: readFileSync(path), loader: "binary" }));
    },
  };
}

async function bundle(arch, outfile, banner) {
  await build({
    entryPoints: [join(root, "src/main.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22.19",
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: false,
    legalComments: "none",
    banner: { js: banner },
    define: { "import.meta.url": "svcImportMetaUrl", "import.meta.dirname": "__dirname" },
    plugins: [embedAddon(arch)],
    logLevel: "warning",
    absWorkingDir: root,
  });
}

async function makeBundle() {
  mkdirSync(dist, { recursive: true });
  // The project's own package.json calls its .js files modules; the bundle is none.
  writeFileSync(join(dist, "package.json"), '{ "type": "commonjs" }\n');
  const file = join(dist, "svc");
  await bundle(process.arch, file, header + oldNode);
  chmodSync(file, 0o755);
  rmSync(join(dist, "svclet"), { force: true });
  symlinkSync("svc", join(dist, "svclet"));
}

async function makeBinary(arch) {
  const runtime = join(root, `node_modules/node-linux-${arch}/bin/node`);
  if (!existsSync(runtime)) {
    console.error(`build: dist/svc-linux-${arch} left out: node-linux-${arch} is not installed (npm install --force --cpu=${arch} node-linux-${arch})`);
    return;
  }
  const work = join(dist, `.sea-${arch}`);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const main = join(work, "svc.cjs");
  await bundle(arch, main, oldNode);
  const stripped = join(work, "node");
  copyFileSync(runtime, stripped);
  strip(stripped, arch);
  const output = join(dist, `svc-linux-${arch}`);
  const config = join(work, "sea.json");
  writeFileSync(
    config,
    JSON.stringify({
      main,
      executable: stripped,
      output,
      disableExperimentalSEAWarning: true,
      // The cache is V8's for one architecture: made here, it is of no use on another.
      useCodeCache: arch === process.arch,
      execArgv: nodeOptions,
      execArgvExtension: "none",
    }),
  );
  execFileSync(process.execPath, ["--build-sea", config], { stdio: ["ignore", "ignore", "inherit"] });
  chmodSync(output, 0o755);
  rmSync(work, { recursive: true, force: true });
}

/** Debug symbols are a fifth of the runtime. Stripping is left out where the tool for the architecture is missing. */
function strip(file, arch) {
  const tools = arch === process.arch ? ["strip"] : [`${arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu-strip`];
  for (const tool of tools) {
    try {
      execFileSync(tool, [file], { stdio: "ignore" });
      return;
    } catch {
      console.error(`build: ${tool} is missing, so dist/svc-linux-${arch} keeps its debug symbols`);
    }
  }
}

if (process.argv.includes("--binary")) for (const arch of Object.keys(addons)) await makeBinary(arch);
else await makeBundle();
