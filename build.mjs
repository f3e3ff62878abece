#!/usr/bin/env node
/**
 * Builds the product:
 *   node build.mjs              dist/svc, one file for hosts with Node (and dist/svclet, a link to it)
 *   node build.mjs --binary     dist/svc-linux-x64 and, where its Node can be fetched, dist/svc-linux-arm64
 *   --arch x64                  only the binary of this architecture
 *   --debug                     not minified, with source maps for a debugger (NODE_OPTIONS=--inspect dist/svc …)
 *   --main FILE --out DIR       another entry and output directory; for tests
 *
 * Each output contains src/main.ts and, separately, the dynamically imported modules in parts: each part has the
 * modules that the same set of imports needs. A part is read and compiled when it is first needed, so that no process holds the
 * text of code that it does not run. In dist/svc the parts are in a comment at the end; in the executables they are
 * assets, together with the code that V8 compiled for them.
 *
 * dist/svc starts as a shell script that finds a recent Node and sets what saves memory and must be set before Node
 * starts: flags, one heap of the C library for all threads, and a fixed bound of the free memory that it keeps. Node
 * compiles only the part that is needed, because it would keep the text of the whole file in memory. Node can also run
 * the file directly.
 *
 * The format is CommonJS, which evaluates only the modules that a run needs, those of Node included.
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
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { bundledPackages, renderNotices } from "./bin/notices.mjs";

const root = dirname(fileURLToPath(import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
// Half of the default space for young objects, all of it from the start: growing it while modules are evaluated costs 7 %
// of the start, for 2 MiB less when idle. One thread collects it: others of V8's threads, which may wait for a CPU, would
// hold up the event loop for 4 MiB. Access to the garbage collector is for src/std/memory/collect-when-idle.ts.
const nodeFlags = ["--min-semi-space-size=4", "--max-semi-space-size=4", "--no-parallel-scavenge", "--expose-gc"];
const oldestNode = { major: 22, minor: 19 };

/**
 * The start of the parts in dist/svc, and the escape for the end of a comment in them. The parts are followed by their
 * offsets, by name, and the last line is the offset of that table, with this number of digits.
 */
const programsMark = "\n/*PROGRAMS\n";
const commentEnd = "*\u0001/";
const offsetDigits = 12;

/** The name of the part with the text of the program that loads the parts, for threads. */
const mainPart = "main.program";

/** Lines of a part whose source positions are compressed together: a log line needs the position of one call. */
const positionsBlockLines = 128;

const { values: options } = parseArgs({
  options: {
    binary: { type: "boolean", default: false },
    debug: { type: "boolean", default: false },
    arch: { type: "string", multiple: true, default: ["x64", "arm64"] },
    main: { type: "string", default: join(root, "src", "main.ts") },
    out: { type: "string", default: join(root, "dist") },
  },
});
async function buildBundle() {
  const file = join(options.out, "svc");
  // Without a package.json in the directory, Node would treat the file as an ES module.
  writeFileSync(join(options.out, "package.json"), '{ "type": "commonjs" }\n');
  const { main, parts, notices } = await bundleApart(["x64", "arm64"], partsFromComment + (await keepCompiledCode()));
  writeFileSync(join(options.out, "THIRD-PARTY-NOTICES.txt"), notices);
  const head = `${header(main.length)}${main}${programsMark}`;
  const temporary = `${file}.new`;
  writeFileSync(temporary, `${head}${partsAfter(head.length, parts)}*/\n`, { mode: 0o755 });
  renameSync(temporary, file);
  rmSync(join(options.out, "svclet"), { force: true });
  symlinkSync("svc", join(options.out, "svclet"));
  report(file);
}

/** The text of the parts in the comment, with their offsets: all text is ASCII, one byte a character. */
function partsAfter(start, parts) {
  const offsets = {};
  let text = "";
  for (const [name, code] of parts) {
    const part = `//${name}\n${code.replaceAll("*/", commentEnd)}\n`;
    offsets[name] = [start + text.length, part.length];
    text += part;
  }
  const end = String(start + text.length).padStart(offsetDigits);
  return `${text}${JSON.stringify(offsets)}\n${end}`;
}

/**
 * JavaScript that reads parts from the file itself. The file stays open, because another version may replace it. A file
 * that was overwritten is detected by the names of its parts, which contain hashes.
 */
const partsFromComment = `
let file, offsets;
function readPart(name) {
  const fs = require("node:fs");
  const read = (start, length) => {
    const bytes = Buffer.alloc(length);
    fs.readSync(file, bytes, 0, length, start);
    return bytes.latin1Slice();
  };
  if (file === undefined) {
    file = fs.openSync(__filename);
    const { size } = fs.fstatSync(file);
    const end = size - 3 - ${offsetDigits};
    const start = Number(read(end, ${offsetDigits}));
    offsets = JSON.parse(read(start, end - start));
  }
  const text = read(...offsets[name]);
  if (!text.startsWith("//" + name)) throw new Error(__filename + " was overwritten while it ran: restart it");
  const code = text.slice(name.length + 3).replaceAll(${JSON.stringify(commentEnd)}, "*" + "/");
  return { code, cachedData: name.endsWith(".js") ? findCompiled(name) : undefined };
}
`;

/** JavaScript that keeps the code that V8 compiled for the parts. */
async function keepCompiledCode() {
  const { outputFiles } = await esbuild.build({
    ...esbuildOptions,
    entryPoints: [join(root, "src", "std", "process", "compiled-code.ts")],
    bundle: true,
    format: "iife",
    globalName: "compiledCodeModule",
    write: false,
  });
  return `
${ascii(outputFiles[0].text)}
let compiledCode;
function findCompiled(name) {
  compiledCode ??= compiledCodeModule.openCompiledCode(JSON.stringify(offsets));
  return compiledCode.find(name);
}
function addCompiled(name, script, cachedData) {
  compiledCode?.add(name, script, cachedData);
}
`;
}

/** JavaScript that reads parts from the executable's assets: few, because Node processes each of them at the start. */
const partsFromAssets = `
let assets;
function readPart(name) {
  const { getAsset, getRawAsset } = require("node:sea");
  // Each call allocates memory.
  assets ??= {
    offsets: JSON.parse(getAsset("offsets", "latin1")),
    parts: getRawAsset("parts"),
    caches: getRawAsset("caches"),
  };
  const { code, cache } = assets.offsets[name];
  return {
    code: Buffer.from(assets.parts, ...code).latin1Slice(),
    cachedData: cache && Buffer.from(assets.caches, ...cache),
  };
}
function addCompiled() {}
`;

/**
 * The source positions of a part, for stack traces and log lines: a compressed source map of version 3 that contains
 * only changes of file or line, in blocks that can be decompressed one by one: first the names of the sources, then
 * lines, which can be decoded one by one. `skippedLines` precede those of the map; `removed` were at its start.
 */
function packPositions(map, skippedLines, removed = { lines: 0, columns: 0 }) {
  const { sources, mappings } = JSON.parse(map);
  const lines = [];
  let source = 0;
  let sourceLine = 0;
  for (const [i, line] of mappings.split(";").entries()) {
    if (i < removed.lines) continue;
    let column = i === removed.lines ? -removed.columns : 0;
    let last;
    const kept = [];
    for (const segment of line === "" ? [] : line.split(",")) {
      const [columns, sourceChange, lineChange] = decodeVlq(segment);
      column += columns;
      if (sourceChange === undefined) continue;
      source += sourceChange;
      sourceLine += lineChange;
      if (last?.source === source && last.sourceLine === sourceLine) continue;
      const from = last ?? { column: 0, source: 0, sourceLine: 0 };
      kept.push([column - from.column, source - from.source, sourceLine - from.sourceLine].join(","));
      last = { column, source, sourceLine };
    }
    lines.push(kept.join(" "));
  }
  const names = sources.map((path) => path.replace(/^(?:\.\.\/)+/, ""));
  const table = [JSON.stringify(names)];
  const all = [...Array(skippedLines).fill(""), ...lines];
  for (let i = 0; i < all.length; i += positionsBlockLines)
    table.push(all.slice(i, i + positionsBlockLines).join("\n"));
  return table.map((text) => gzipSync(text, { level: 9 }).toString("base64")).join("\n");
}

/** The numbers of one segment of a source map (ECMA-426, "Base64 VLQ"). */
function decodeVlq(text) {
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const numbers = [];
  let value = 0;
  let shift = 0;
  for (const letter of text) {
    const digit = digits.indexOf(letter);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return numbers;
}

/** The name of the part with the source positions of another. */
function positionsOf(name) {
  return `${name}.positions`;
}

/**
 * JavaScript that finds the source of a position, \`src/…/file.ts:12\`, for stack traces. It caches 4096 positions,
 * and the last block of the last part until memory is collected.
 */
const sourcePositions = `
const located = new Map();
let lastTable;
function locate(script, line, column) {
  if (script === null || script === undefined || !script.startsWith(__filename)) return undefined;
  const key = script + ":" + line + ":" + column;
  let found = located.get(key);
  if (found === undefined) {
    found = findPosition(script === __filename ? "main" : script.slice(__filename.length + 1), line, column) ?? "";
    if (located.size >= 4096) located.clear();
    located.set(key, found);
  }
  return found === "" ? undefined : found;
}
function findPosition(name, line, column) {
  let table = lastTable?.deref();
  if (table?.name !== name) {
    let blocks;
    try { blocks = readPart(name + ".positions").code.split("\\n"); } catch { return undefined; }
    table = { name, blocks, sources: JSON.parse(inflate(blocks[0])) };
    lastTable = new WeakRef(table);
  }
  const block = Math.floor((line - 1) / ${positionsBlockLines}) + 1;
  if (table.block !== block) {
    table.block = block;
    table.lines = inflate(table.blocks[block] || "").split("\\n");
  }
  let at = 0, source = 0, sourceLine = 0, found;
  for (const segment of (table.lines[(line - 1) % ${positionsBlockLines}] || "").split(" ")) {
    const [columns, sources, lines] = segment.split(",").map(Number);
    at += columns;
    if (segment === "" || at > column - 1) break;
    source += sources;
    sourceLine += lines;
    found = table.sources[source] + ":" + (sourceLine + 1);
  }
  return found;
}
function inflate(block) {
  return block === "" ? "" : require("node:zlib").gunzipSync(Buffer.from(block, "base64")).toString("latin1");
}
Error.prepareStackTrace = (error, sites) => {
  let head;
  try { head = String(error); } catch { head = "Error"; }
  for (const site of sites) {
    const found = locate(site.getFileName(), site.getLineNumber(), site.getColumnNumber());
    const name = found === undefined ? undefined : site.getFunctionName();
    if (found === undefined) head += "\\n    at " + site;
    else head += "\\n    at " + (name === null ? found : name + " (" + found + ")");
  }
  return head;
};
`;

const partLoader = `
const parts = new Map();
// As import() of Node: a CommonJS module has its exports as names and as the default.
function toModule(exports) {
  return exports.__esModule ? exports : Object.create(exports, { default: { value: exports } });
}
function loadPart(name) {
  const loaded = parts.get(name);
  if (loaded !== undefined) return loaded.exports;
  const { Script } = require("node:vm");
  const { code, cachedData } = readPart(name);
  const script = new Script(code, { filename: __filename + "#" + name, cachedData });
  addCompiled(name, script, cachedData);
  const part = { exports: {} };
  parts.set(name, part);
  const find = (id) => (id.startsWith("./") ? loadPart(id.slice(2)) : require(id));
  script.runInThisContext()(find, part, part.exports, __filename, __dirname, importMetaUrl, readBytes, locate, toModule, mainProgram);
  return part.exports;
}
function readBytes(name) {
  return Buffer.from(readPart(name).code, "base64");
}
// What a thread runs: this program itself.
function mainProgram() {
  return { code: readPart(${JSON.stringify(mainPart)}).code, file: __filename };
}
`;

/**
 * Bundles src/main.ts with `reader`, and separately the parts that it loads, by name. `nodeLicense` is the path of the
 * licenses of the Node.js that the output contains.
 */
async function bundleApart(architectures, reader, nodeLicense) {
  const paths = [];
  const apart = {
    name: "programs-apart",
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
        if (kind !== "dynamic-import") return undefined;
        const file = relative(root, join(resolveDir, path));
        if (!paths.includes(file)) paths.push(file);
        return { path: file, namespace: "program" };
      });
      build.onLoad({ filter: /./, namespace: "program" }, ({ path }) => ({
        contents: `module.exports = loadPart(programs[${JSON.stringify(path)}]);`,
        loader: "js",
      }));
    },
  };
  const entry = { entryPoints: [options.main], plugins: [apart], banner, outfile: "main.js", metafile: true };
  const { outputFiles, metafile } = await bundle(entry);
  const main = outputFile(outputFiles, "main.js");
  // esbuild does not always resolve imports in the same order.
  paths.sort();
  const { parts, programs, metafile: metafileOfParts } = await bundleParts(paths, architectures);
  const notices = renderNotices(root, bundledPackages([metafile, metafileOfParts]), nodeLicense);
  parts.set("notices", gzipSync(notices, { level: 9 }).toString("base64"));
  parts.set(positionsOf("main"), packPositions(outputFile(outputFiles, "main.js.map"), 0));
  const programTable = `\nconst programs = ${JSON.stringify(programs)};\n`;
  const code = ascii(withoutMapComment(main)) + programTable + reader + partLoader + sourcePositions;
  parts.set(mainPart, code);
  return { main: code + mapComment(outputFile(outputFiles, "main.js.map"), 0), parts, notices };
}

/** The text of an output file of esbuild. */
function outputFile(files, name) {
  return files.find(({ path }) => path.endsWith(`/${name}`)).text;
}

function withoutMapComment(text) {
  return text.replace(/\n\/\/# sourceMappingURL=.*\n?$/, "\n");
}

/** Bundles the dynamically imported modules with their dependencies: parts by name, and the part of each path. */
async function bundleParts(paths, architectures) {
  const parts = new Map();
  const { outputFiles, metafile } = await bundle({
    entryPoints: paths,
    format: "esm",
    splitting: true,
    outdir: ".",
    entryNames: "[name]-[hash]",
    metafile: true,
    plugins: [addonsApart(architectures, parts)],
  });
  const programs = {};
  for (const { path, text } of outputFiles) {
    if (path.endsWith(".map")) continue;
    const name = relative(root, path);
    const { entryPoint, imports } = metafile.outputs[name];
    const needed = imports.filter(({ kind, external }) => kind === "import-statement" && external !== true);
    // esbuild exports such a module as the default export only; in Node an import has its named exports too.
    const isCommonJs = metafile.inputs[entryPoint]?.format === "cjs";
    const end = isCommonJs ? "module.exports = module.exports.default;\n" : "";
    const map = outputFile(outputFiles, `${name}.map`);
    const { code, positions } = await asFunction(withoutMapComment(text), map, needed.length, end);
    parts.set(name, code);
    parts.set(positionsOf(name), positions);
    if (entryPoint !== undefined && paths.includes(entryPoint)) programs[entryPoint] = name;
  }
  return { parts, programs, metafile };
}

const partParameters = [
  "require",
  "module",
  "exports",
  "__filename",
  "__dirname",
  "importMetaUrl",
  "readBytes",
  "locate",
  "__toModule",
  "mainProgram",
];

/**
 * Converts a module of esbuild to the expression of a function. Its `count` imports of other parts come first. Parts
 * have no cycles, so imported values exist at that time and are read once.
 */
async function asFunction(text, map, count, end) {
  const needs = /^import\s*(?:\{([^}]*)\}\s*from\s*)?("\.\/[^"]+");?\s*/;
  let rest = text;
  let head = "";
  for (let left = count; left > 0; left--) {
    const [statement, names, path] = needs.exec(rest) ?? [];
    if (statement === undefined)
      throw new Error(`${left} imports are not at the start of the module: ${rest.slice(0, 80)}`);
    const required = `require(${path})`;
    const bindings = names?.replaceAll(/\sas\s/g, ":").replaceAll("\n", " ");
    head += bindings === undefined ? `${required};` : `const {${bindings}} = ${required};`;
    // Keeps the number of lines, so that the map stays valid.
    head += "\n".repeat(statement.split("\n").length - 1);
    rest = rest.slice(statement.length);
  }
  const inlineMap = `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString("base64")}`;
  const result = await esbuild.transform(head + rest + inlineMap, {
    ...esbuildOptions,
    format: "cjs",
    supported: { "dynamic-import": false },
    sourcemap: "external",
    sourcesContent: options.debug,
  });
  const { body, removed } = withPlainExports(result.code);
  // The head of the function adds one line to the map.
  const code = `(function (${partParameters.join(", ")}) {\n${ascii(body)}${end}})${mapComment(result.map, 1)}`;
  return { code, positions: packPositions(result.map, 1, removed) };
}

/**
 * esbuild starts each CommonJS module with helpers that define a getter for each export, twice. Parts have no cycles and
 * export no variables that change: an object at the end of the module does the same, and saves 4 % of the start.
 */
function withPlainExports(code) {
  const start =
    /^var __[\s\S]*?;\s*var\s(\w+)=\{\};\s*__export\(\s*\1\s*,\s*\{([^{}]*)\}\);\s*module\s*\.\s*exports\s*=\s*__toCommonJS\(\s*\1\s*\)\s*;/.exec(
      code,
    );
  const end = /0\s*&&\s*\(\s*module\s*\.\s*exports\s*=\s*\{[^{}]*\}\s*\)\s*;\s*$/.exec(code);
  if (start === null || end === null) return { body: code, removed: undefined };
  const [text, , getters] = start;
  const rest = code.slice(text.length, end.index);
  if (
    /\b__(defProp|getOwnPropDesc|getOwnPropNames|hasOwnProp|getProtoOf|create|export|copyProps|toCommonJS)\b/.test(rest)
  )
    return { body: code, removed: undefined };
  const lines = text.split("\n");
  const helper = /[ ,](__toESM\d*)\s*=/.exec(text)?.[1];
  const head = helper === undefined ? "" : `const ${helper}=__toModule;`;
  const removed = { lines: lines.length - 1, columns: lines.at(-1).length - head.length };
  return {
    body: `${head}${rest}module.exports={__esModule:!0,${getters.replaceAll(/:\s*\(\)\s*=>/g, ":")}};\n`,
    removed,
  };
}

/** With --debug, the comment with the source map for a debugger; `skippedLines` precede those of the map. */
function mapComment(map, skippedLines) {
  if (!options.debug) return "";
  const { mappings, sources, ...rest } = JSON.parse(map);
  const paths = sources.map((path) => join(root, path.replace(/^(?:\.\.\/)+/, "")));
  const shifted = JSON.stringify({ ...rest, sources: paths, mappings: ";".repeat(skippedLines) + mappings });
  return `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(shifted).toString("base64")}`;
}

/** For `node dist/svc` with an old Node; as a program, dist/svc finds a recent one. The syntax is that of old Nodes. */
const nodeCheck = [
  'var version=process.versions.node.split(".")',
  `if(version[0]<${oldestNode.major}||(version[0]==${oldestNode.major}&&version[1]<${oldestNode.minor})){`,
].join(";");
const oldNodeMessage = `svc: needs Node.js ${oldestNode.major}.${oldestNode.minor} or newer: `;
const banner = {
  js: [
    `(function(){${nodeCheck}process.stderr.write(${JSON.stringify(oldNodeMessage)}+process.execPath+" is "`,
    '+process.version+"; run "+__filename+" itself, which looks for a newer one: SVC_NODE may name it\\n")',
    ";process.exit(127)}})();",
    'const importMetaUrl=require("node:url").pathToFileURL(__filename).href;',
  ].join(""),
};

/** `git archive` replaces this by the commit and the seconds of its date (.gitattributes). */
const archivedCommit = "$Format:%H %ct$";

/**
 * The commit of the checkout or of the archive and its date, so that equal sources give equal output; undefined for
 * other copies.
 */
function findCommit() {
  const git = (...words) =>
    execFileSync("git", ["-C", root, ...words], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  const describe = (text, gitTreeState) => {
    const [gitCommit, seconds] = text.split(" ");
    const buildDate = new Date(Number(seconds) * 1000).toISOString().replace(".000Z", "Z");
    return { gitCommit, gitTreeState, buildDate };
  };
  if (!archivedCommit.startsWith("$")) return describe(archivedCommit, "archive");
  try {
    if (git("rev-parse", "--show-toplevel") !== root) return undefined;
    const isClean = git("status", "--porcelain", "--untracked-files=no") === "";
    return describe(git("show", "-s", "--format=%H %ct", "HEAD"), isClean ? "clean" : "dirty");
  } catch {
    return undefined;
  }
}
const commit = findCommit();

/** The options of esbuild for all output. */
const esbuildOptions = {
  platform: "node",
  target: `node${oldestNode.major}.${oldestNode.minor}`,
  minifySyntax: !options.debug,
  minifyWhitespace: !options.debug,
  // Short lines, so that positions in stack traces are useful.
  lineLimit: 160,
  legalComments: "inline",
  charset: "ascii",
  logLevel: "warning",
};

function bundle(input) {
  return esbuild.build({
    ...esbuildOptions,
    absWorkingDir: root,
    bundle: true,
    write: false,
    format: "cjs",
    sourcemap: "external",
    sourcesContent: options.debug,
    define: {
      SVC_LOCATE: "locate",
      SVC_READ_BYTES: "readBytes",
      SVC_MAIN: "mainProgram",
      SVC_COMMIT: commit === undefined ? "undefined" : JSON.stringify(JSON.stringify(commit)),
      "import.meta.url": "importMetaUrl",
      "import.meta.dirname": "__dirname",
      SVC_VERSION: JSON.stringify(manifest.version),
    },
    ...input,
  });
}

/** esbuild leaves non-ASCII characters in regular expressions and comments: escapes are equivalent there. */
function ascii(text) {
  return text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * classic-level searches its addon in the files of its package. In the bundle the addon is a part, which
 * src/storage/level/native.ts loads.
 */
function addonsApart(architectures, parts) {
  const files = {
    x64: "linux-x64/classic-level.node",
    arm64: "linux-arm64/classic-level.armv8.node",
  };
  return {
    name: "addons-apart",
    setup(build) {
      build.onLoad({ filter: /[/\\]classic-level[/\\]binding\.js$/ }, ({ path }) => {
        const names = {};
        for (const architecture of architectures) {
          const bytes = readFileSync(join(dirname(path), "prebuilds", files[architecture]));
          names[architecture] = `addon-${architecture}`;
          parts.set(names[architecture], bytes.toString("base64"));
        }
        return {
          resolveDir: dirname(path),
          loader: "js",
          contents: `
            const { loadAddon } = require(${JSON.stringify(join(root, "src/storage/level/native.ts"))});
            const name = ${JSON.stringify(names)}[process.arch];
            if (name === undefined) throw new Error("The embedded store has no native code for " + process.arch);
            module.exports = loadAddon(readBytes(name));`,
        };
      });
    },
  };
}

/**
 * The start of dist/svc: a script for the shell, and a string and a comment for Node. `size` is that of the JavaScript
 * behind it, which Node reads from the end of the header; numbers have a fixed width, so that the size of the header
 * is known.
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
    // Not for child processes.
    "delete process.env.MALLOC_ARENA_MAX",
    "delete process.env.MALLOC_TRIM_THRESHOLD_",
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
    export MALLOC_ARENA_MAX=\${MALLOC_ARENA_MAX:-1} MALLOC_TRIM_THRESHOLD_=\${MALLOC_TRIM_THRESHOLD_:-131072}
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
    const nodeLicense = join(dirname(dirname(node)), "LICENSE");
    const { main: code, parts } = await bundleApart([architecture], partsFromAssets, nodeLicense);
    writeFileSync(main, code);
    // Compiled code is valid only for the Node and the CPU that compiled it.
    const caches = native ? compile(executable, work, parts) : new Map();
    const assets = writeAssets(work, parts, caches);
    const config = join(work, "config.json");
    writeFileSync(
      config,
      JSON.stringify({
        main,
        output: made,
        executable,
        disableExperimentalSEAWarning: true,
        useCodeCache: native,
        assets,
        execArgv: nodeFlags,
        execArgvExtension: "none",
      }),
    );
    execFileSync(process.execPath, [...nodeFlags, "--build-sea", config], { stdio: ["ignore", "ignore", "inherit"] });
    chmodSync(made, 0o755);
    renameSync(made, output);
    report(output);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Writes the parts and their compiled code, each concatenated in a file, with their offsets. */
function writeAssets(work, parts, caches) {
  const pieces = { parts: [], caches: [] };
  const ends = { parts: 0, caches: 0 };
  const append = (asset, bytes) => {
    const start = ends[asset];
    pieces[asset].push(bytes);
    ends[asset] += bytes.length;
    return [start, bytes.length];
  };
  const offsets = {};
  for (const [name, text] of parts) {
    const cache = caches.get(name);
    offsets[name] = {
      code: append("parts", Buffer.from(text, "latin1")),
      ...(cache === undefined ? {} : { cache: append("caches", cache) }),
    };
  }
  const contents = {
    offsets: JSON.stringify(offsets),
    parts: Buffer.concat(pieces.parts),
    caches: Buffer.concat(pieces.caches),
  };
  const assets = {};
  for (const [name, content] of Object.entries(contents)) {
    assets[name] = join(work, name);
    writeFileSync(assets[name], content);
  }
  return assets;
}

/** The code that V8 compiles for each script, by name. */
function compile(node, work, parts) {
  const compiler = `
    const { readFileSync, writeFileSync } = require("node:fs");
    const { Script } = require("node:vm");
    for (const path of process.argv.slice(1)) {
      const script = new Script(readFileSync(path, "latin1"));
      writeFileSync(path + ".cache", script.createCachedData());
    }`;
  // Other parts are binary data.
  const scripts = [...parts.keys()].filter((name) => name.endsWith(".js"));
  for (const name of scripts) writeFileSync(join(work, name), parts.get(name));
  const paths = scripts.map((name) => join(work, name));
  execFileSync(node, [...nodeFlags, "-e", compiler, ...paths], { stdio: ["ignore", "inherit", "inherit"] });
  return new Map(scripts.map((name) => [name, readFileSync(join(work, `${name}.cache`))]));
}

/** The pinned Node of an architecture; that of another machine is fetched from npm. */
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

/** Copies Node without symbols, which makes it a quarter smaller. The finished executable cannot be stripped. */
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
      // Not installed, or not for this CPU: try the next one.
    }
  }
  console.error(`build: no strip program for ${architecture}: its binary stays larger`);
  return copy;
}

function report(file) {
  const mebibytes = (readFileSync(file).length / 2 ** 20).toFixed(1);
  console.error(`build: ${relative(root, file)} ${mebibytes} MiB`);
}

mkdirSync(options.out, { recursive: true });
if (options.binary) await buildBinaries();
else await buildBundle();
