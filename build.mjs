#!/usr/bin/env node
/**
 * Makes the product:
 *   node build.mjs              dist/svc, one file for hosts with Node (and dist/svclet, a link to it)
 *   node build.mjs --binary     dist/svc-linux-x64 and, where its Node can be had, dist/svc-linux-arm64
 *   --arch x64                  of the binaries only this one
 *   --main FILE --out DIR       another entry, another place; for the tests of this file
 *
 * Either form is src/main.ts and, apart from it, the programs that it imports when they are asked for: to read and
 * compile all of them would double what `svc version` takes. In dist/svc they lie in a comment at the end; in the
 * executables they are an asset, with the code that V8 compiled for them beside it.
 *
 * dist/svc starts as a shell script that looks for a Node new enough and gives it the flag that halves its memory,
 * which is too late once Node runs. It has Node compile the part that is needed instead of the file, whose text Node
 * would keep for as long as it runs. Node can also run the file itself.
 *
 * CommonJS, because there only the modules that a run reaches are evaluated, Node's own included.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as esbuild from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const nodeFlags = ["--max-semi-space-size=4"];
const oldestNode = { major: 22, minor: 19 };

/** Where the programs begin, and what stands in them for the end of a comment. */
const programsMark = "\n/*PROGRAMS\n";
const commentEnd = "*\u0001/";

const { values: options } = parseArgs({
  options: {
    binary: { type: "boolean", default: false },
    arch: { type: "string", multiple: true, default: ["x64", "arm64"] },
    main: { type: "string", default: join(root, "src", "main.ts") },
    out: { type: "string", default: join(root, "dist") },
  },
});
async function buildBundle() {
  const file = join(options.out, "svc");
  // The directory's own package.json keeps Node from reading the file by the rules of the one above.
  writeFileSync(join(options.out, "package.json"), '{ "type": "commonjs" }\n');
  const { main, programs } = await bundleApart(["x64", "arm64"], programsFromComment);
  const temporary = `${file}.new`;
  writeFileSync(temporary, `${header(main.length)}${main}${programsMark}${programs.replaceAll("*/", commentEnd)}*/\n`, {
    mode: 0o755,
  });
  renameSync(temporary, file);
  rmSync(join(options.out, "svclet"), { force: true });
  symlinkSync("svc", join(options.out, "svclet"));
  report(file);
}

/** JavaScript that reads the programs from the file itself, and keeps nothing else of it. */
const programsFromComment = `
function readPrograms() {
  const file = require("node:fs").readFileSync(__filename);
  const mark = ${JSON.stringify(programsMark.slice(0, -1))} + "\\n";
  const code = file.latin1Slice(file.lastIndexOf(mark) + mark.length, file.lastIndexOf("*/"));
  return { code: code.replaceAll(${JSON.stringify(commentEnd)}, "*" + "/") };
}
`;

/** JavaScript that reads the programs from the executable's assets. */
const programsFromAssets = `
function readPrograms() {
  const { getAssetKeys, getRawAsset } = require("node:sea");
  const asset = (name) => Buffer.from(getRawAsset(name));
  return {
    code: asset("programs.js").latin1Slice(),
    cachedData: getAssetKeys().includes("programs.cache") ? asset("programs.cache") : undefined,
  };
}
`;

const programLoader = `
let programs;
function loadProgram(path) {
  if (programs === undefined) {
    const { code, cachedData } = readPrograms();
    const { Script } = require("node:vm");
    const script = new Script(code, { filename: __filename + "#programs", cachedData });
    programs = {};
    script.runInThisContext()(programs, require, module, __filename, __dirname);
  }
  return programs[path]();
}
`;

/** src/main.ts with `reader` in it, and apart from it the programs that it imports. */
async function bundleApart(architectures, reader) {
  const paths = [];
  const apart = {
    name: "programs-apart",
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
        if (kind !== "dynamic-import") return undefined;
        const file = `./${relative(root, join(resolveDir, path))}`;
        if (!paths.includes(file)) paths.push(file);
        return { path: file, namespace: "program" };
      });
      build.onLoad({ filter: /./, namespace: "program" }, ({ path }) => ({
        contents: `module.exports = loadProgram(${JSON.stringify(path)});`,
        loader: "js",
      }));
    },
  };
  const main = await bundle({ entryPoints: [options.main], plugins: [apart] });
  // The order in which esbuild asks is not always the same.
  paths.sort();
  const programs = await bundle({
    stdin: {
      contents: paths
        .map((path) => `exports[${JSON.stringify(path)}] = () => require(${JSON.stringify(path)});`)
        .join("\n"),
      resolveDir: root,
      sourcefile: "programs.js",
    },
    plugins: [embedAddon(architectures)],
  });
  const parameters = "exports, require, module, __filename, __dirname";
  return { main: main + reader + programLoader, programs: `(function (${parameters}) {\n${programs}\n})` };
}

/** A bundle's text. Bytes beyond ASCII would make Node keep all of it twice as wide. */
async function bundle(input) {
  const result = await esbuild.build({
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    target: `node${oldestNode.major}.${oldestNode.minor}`,
    minifySyntax: true,
    minifyWhitespace: true,
    // Short lines, so that a stack trace points somewhere.
    lineLimit: 160,
    legalComments: "inline",
    charset: "ascii",
    logLevel: "warning",
    define: {
      "import.meta.url": "importMetaUrl",
      "import.meta.dirname": "__dirname",
      SVC_VERSION: JSON.stringify(manifest.version),
    },
    banner: { js: 'const importMetaUrl=require("node:url").pathToFileURL(__filename).href;' },
    ...input,
  });
  return ascii(result.outputFiles[0].text);
}

/** esbuild leaves letters beyond ASCII in regular expressions and comments. An escape means the same wherever they are. */
function ascii(text) {
  return text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * classic-level looks for its addon among the files of its package. In the bundle the addon's bytes are in the file,
 * and src/storage/level/native.ts, which knows where they may be written, loads them.
 */
function embedAddon(architectures) {
  const files = {
    x64: "linux-x64/classic-level.node",
    arm64: "linux-arm64/classic-level.armv8.node",
  };
  return {
    name: "embed-addon",
    setup(build) {
      build.onLoad({ filter: /[/\\]classic-level[/\\]binding\.js$/ }, ({ path }) => {
        const cases = architectures.map(
          (architecture) =>
            `case ${JSON.stringify(architecture)}: return require(${JSON.stringify(`./prebuilds/${files[architecture]}`)});`,
        );
        return {
          resolveDir: dirname(path),
          loader: "js",
          contents: `
            const { loadAddon } = require(${JSON.stringify(join(root, "src/storage/level/native.ts"))});
            function bytes() {
              switch (process.arch) {
                ${cases.join("\n")}
                default: throw new Error("The embedded store has no native code for " + process.arch);
              }
            }
            module.exports = loadAddon(bytes());`,
        };
      });
      build.onLoad({ filter: /\.node$/ }, ({ path }) => ({ contents: readFileSync(path), loader: "binary" }));
    },
  };
}

/**
 * Shell to the first line's reader, a string and a comment to Node's. `size` is that of the JavaScript behind it. Node is
 * told to take that many bytes from where the header ends; numbers have a fixed width, so that the header's own is known.
 */
function header(size) {
  const text = headerAround(0, size);
  return headerAround(text.length, size);
}

function headerAround(start, size) {
  const at = (value) => String(value).padStart(9);
  const loader = [
    'const fs=require("fs"),path=require("path"),file=path.resolve(process.argv[1])',
    `fd=fs.openSync(file),code=Buffer.alloc(${at(size)})`,
  ].join(",");
  const run = 'const parameters=["require","module","exports","__filename","__dirname"]';
  const compiled = 'require("vm").compileFunction(code.latin1Slice(),parameters,{filename:file})';
  const node = [
    `${loader};fs.readSync(fd,code,0,code.length,${at(start)});fs.closeSync(fd)`,
    'process.argv[1]=file;process.title=[path.basename(file),...process.argv.slice(2)].join(" ")',
    `${run};${compiled}(require,module,exports,file,path.dirname(file))`,
  ].join(";");
  return `#!/bin/sh
":" /*
file=$0
if [ -L "$file" ]; then file=$(readlink -f -- "$file"); fi
here=\${file%/[!/]*}
[ "$here" != "$file" ] || here=.
for node in "$SVC_NODE" "$here/node" "$here/../node_modules/.bin/node" "$(command -v node)"; do
  [ -n "$node" ] && [ -x "$node" ] || continue
  version=$("$node" --version 2>&1)
  major=\${version#v}; minor=\${major#*.}; major=\${major%%.*}; minor=\${minor%%.*}
  case $major$minor in *[!0-9]*|"") continue;; esac
  if [ "$major" -gt ${oldestNode.major} ] || { [ "$major" -eq ${oldestNode.major} ] && [ "$minor" -ge ${oldestNode.minor} ]; }; then
    exec "$node" ${nodeFlags.join(" ")} -e '${node}' -- "$0" "$@"
  fi
  found="$found $node is $version;"
done
echo "svc: needs Node.js ${oldestNode.major}.${oldestNode.minor} or newer:\${found:- none found;} SVC_NODE may name one, and svc-linux-x64 brings its own" >&2
exit 127
*/;
`;
}

async function buildBinaries() {
  let made = 0;
  for (const architecture of options.arch) {
    const node = nodeFor(architecture);
    if (node === undefined) continue;
    await buildBinary(architecture, node);
    made++;
  }
  if (made === 0) process.exitCode = 1;
}

async function buildBinary(architecture, node) {
  const work = mkdtempSync(join(options.out, ".binary-"));
  try {
    const native = architecture === process.arch;
    const main = join(work, "svc.cjs");
    const output = join(options.out, `svc-linux-${architecture}`);
    const made = join(work, "svc");
    const executable = strip(node, join(work, "node"), architecture);
    const { main: code, programs } = await bundleApart([architecture], programsFromAssets);
    writeFileSync(main, code);
    const assets = { "programs.js": join(work, "programs.js") };
    writeFileSync(assets["programs.js"], programs);
    if (native) assets["programs.cache"] = compile(executable, assets["programs.js"]);
    const config = join(work, "config.json");
    writeFileSync(
      config,
      JSON.stringify({
        main,
        output: made,
        executable,
        disableExperimentalSEAWarning: true,
        // Compiled code is for the Node and the processor that made it.
        useCodeCache: native,
        assets,
        execArgv: nodeFlags,
        execArgvExtension: "none",
      }),
    );
    execFileSync(process.execPath, ["--build-sea", config], { stdio: ["ignore", "ignore", "inherit"] });
    chmodSync(made, 0o755);
    renameSync(made, output);
    report(output);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What V8 makes of a script, for the Node that compiled it; the file's path. */
function compile(node, script) {
  const cache = `${script}.cache`;
  const compiler = `
    const { readFileSync, writeFileSync } = require("node:fs");
    const { Script } = require("node:vm");
    const script = new Script(readFileSync(process.argv[1], "latin1"));
    writeFileSync(process.argv[2], script.createCachedData());`;
  execFileSync(node, [...nodeFlags, "-e", compiler, script, cache], { stdio: ["ignore", "inherit", "inherit"] });
  return cache;
}

/** The pinned Node of an architecture; the packages of others than this machine's are fetched from npm. */
function nodeFor(architecture) {
  const name = `node-linux-${architecture}`;
  const installed = join(root, "node_modules", name, "bin", "node");
  if (existsSync(installed)) return installed;
  const cache = join(root, "node_modules", ".cache", `${name}-${manifest.optionalDependencies[name]}`);
  const cached = join(cache, "package", "bin", "node");
  if (existsSync(cached)) return cached;
  try {
    mkdirSync(cache, { recursive: true });
    const packed = execFileSync(
      "npm",
      ["pack", "--silent", "--pack-destination", cache, `${name}@${manifest.optionalDependencies[name]}`],
      { cwd: cache, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
    );
    execFileSync("tar", ["-xzf", join(cache, packed.trim().split("\n").at(-1)), "-C", cache]);
    return cached;
  } catch (error) {
    console.error(`build: no binary for ${architecture}: npm cannot fetch ${name} (${error.message.split("\n")[0]})`);
    return undefined;
  }
}

/** A copy without symbols, a quarter smaller. Stripping comes first: the finished file would not survive it. */
function strip(node, copy, architecture) {
  copyFileSync(node, copy);
  chmodSync(copy, 0o755);
  const tools =
    architecture === process.arch
      ? ["strip"]
      : [`${{ x64: "x86_64", arm64: "aarch64" }[architecture]}-linux-gnu-strip`];
  for (const tool of [...tools, "llvm-strip"]) {
    try {
      execFileSync(tool, [copy], { stdio: "ignore" });
      return copy;
    } catch {
      // Not here, or not for this processor: the next one.
    }
  }
  console.error(`build: nothing here strips ${architecture}: its binary stays larger`);
  return copy;
}

function report(file) {
  const mebibytes = (readFileSync(file).length / 2 ** 20).toFixed(1);
  console.error(`build: ${relative(root, file)} ${mebibytes} MiB`);
}

mkdirSync(options.out, { recursive: true });
if (options.binary) await buildBinaries();
else await buildBundle();
