/** Finds the code that reads feature gates: product files in which the name of a gate is a literal. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { allGates } from "../../flags/gate-tables/all.ts";

const source = new URL("../../", import.meta.url).pathname;

/** The folders of a program's code, and of the code that runs in its process. */
export const programFolders = {
  apiserver: ["admission", "api", "apiserver", "audit", "auth", "controllers", "http", "registry", "scheduler"],
  agent: ["agent"],
  controllerManager: ["controller-manager", "controllers"],
  scheduler: ["scheduler"],
} as const;

/** The files by gate, in order. In schemas, gates describe fields; `src/api/gated-fields` reads them. */
export function findGateReads(folders: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const reads = new Map<string, string[]>();
  for (const folder of folders) {
    const files = readdirSync(join(source, folder), { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && !/\.(test|bench|fuzz)\.ts$/.test(file),
    );
    for (const file of files.sort()) {
      for (const name of gatesIn(join(source, folder, file))) {
        reads.set(name, [...(reads.get(name) ?? []), `src/${folder}/${file}`]);
      }
    }
  }
  return reads;
}

function gatesIn(path: string): ReadonlySet<string> {
  const text = readFileSync(path, "utf8");
  // The names of Go's types.
  if (path.endsWith("/go-names.ts")) return new Set();
  const isTable = /\/(?:kinds?|built-in-plugins|agent\/config\/schema)\.ts$/.test(path);
  const code = isTable ? text : text.replaceAll(/featureGate:\s*"\w+"/g, "");
  const literals = [...code.matchAll(/"([A-Z]\w+)"/g)].map(([, name = ""]) => name);
  return new Set(literals.filter((name) => Object.hasOwn(allGates, name)));
}
