/**
 * The notices of the third-party software in the output of build.mjs: the npm packages that esbuild bundled, the
 * sources of classic-level's native code and, in the executables, Node.js.
 */
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const noticeFile = /^(?:licen[cs]e|copying|notice|copyright|third.?party)/i;
const addon = "classic-level";

/** The directories of the npm packages that have code in the output of esbuild. */
export function bundledPackages(metafiles) {
  const found = new Set();
  for (const { outputs } of metafiles) {
    for (const { inputs } of Object.values(outputs)) {
      for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
        const [directory] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [];
        if (directory !== undefined && bytesInOutput > 0) found.add(directory);
      }
    }
  }
  // A header of the native code.
  if (found.has(`node_modules/${addon}`)) found.add("node_modules/napi-macros");
  return [...found];
}

/** The text of all notices. `nodeLicense` is the path of the licenses of the Node.js in an executable. */
export function renderNotices(root, directories, nodeLicense) {
  const sections = [
    ...directories.flatMap((directory) => packageSections(join(root, directory))),
    ...(nodeLicense === undefined ? [] : [{ title: "Node.js", text: readFileSync(nodeLicense, "utf8") }]),
  ];
  sections.sort((a, b) => (a.title < b.title ? -1 : 1));
  const line = "=".repeat(80);
  const head = "svc contains the software below. Its licenses and notices follow.\n";
  const list = sections.map(({ title }) => `  ${title}\n`).join("");
  return `${head}\n${list}${sections.map(({ title, text }) => `\n${line}\n${title}\n${line}\n\n${text.trim()}\n`).join("")}`;
}

function packageSections(directory) {
  const { name, version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  const files = readdirSync(directory).filter((file) => noticeFile.test(file));
  if (files.length === 0 && license === undefined) throw new Error(`${directory} has no license`);
  const texts = files.sort().map((file) => readFileSync(join(directory, file), "utf8").trim());
  const text = texts.length > 0 ? texts.join("\n\n") : statedLicense(directory, license);
  const section = { title: `${name} ${version} (${license})`, text };
  return name === addon ? [section, ...nativeSections(directory)] : [section];
}

/** For packages without a license file. */
function statedLicense(directory, license) {
  const { author, homepage, repository } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  const source = homepage ?? repository?.url ?? repository ?? "";
  const holder = typeof author === "string" ? author : author?.name;
  return [`License: ${license}`, ...(holder ? [`Author: ${holder}`] : []), `Source: ${source}`].join("\n");
}

/** LevelDB and Snappy, which are compiled into the addon. */
function nativeSections(directory) {
  return ["leveldb", "snappy"].map((name) => {
    const [file] = globSync(join(directory, "deps", name, "**/{LICENSE,COPYING}")).sort();
    if (file === undefined || !existsSync(dirname(file))) throw new Error(`${directory}/deps/${name} has no license`);
    return { title: `${name} (in the native code of ${addon})`, text: readFileSync(file, "utf8") };
  });
}
