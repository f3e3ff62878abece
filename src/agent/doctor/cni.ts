/** The configuration and the plugins of the pods' network. */
import { join } from "node:path";
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";

export interface CniFile {
  readonly name: string;
  /** Why it cannot be used. */
  readonly problem: string | undefined;
  readonly version: string;
  /** Names of the plugins that it uses, IPAM included. */
  readonly plugins: readonly string[];
}

export interface CniFacts {
  readonly confDir: string;
  readonly binDirs: readonly string[];
  /** In the order in which the runtime reads them; undefined: the directory does not exist. */
  readonly files: readonly CniFile[] | undefined;
  /** Those that can be executed. */
  readonly executables: readonly string[];
}

const versions = new Set(["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]);

/** `isCreated`: svc up writes the configuration at its start. */
export function checkCni({ confDir, binDirs, files, executables }: CniFacts, isCreated: boolean): readonly Finding[] {
  if (files === undefined || files.length === 0) {
    if (isCreated) return [finding("cni-config", "ok", `svc up writes it to ${confDir}`)];
    const what = files === undefined ? "does not exist" : "has no .conflist, .conf or .json file";
    return [finding("cni-config", "error", `${confDir} ${what}`)];
  }
  const broken = files.filter(({ problem }) => problem !== undefined);
  const used = files.find(({ problem }) => problem === undefined);
  const validity = findingOf(
    "cni-config-valid",
    files.map(({ name }) => name).join(", "),
    broken.length === 0
      ? undefined
      : broken.map(({ name, problem }) => `${join(confDir, name)}: ${problem}`).join("; "),
    used === undefined ? "error" : "warning",
  );
  if (used === undefined) return [finding("cni-config", "error", `no file in ${confDir} can be used`), validity];
  const missing = used.plugins.filter((plugin) => !executables.includes(plugin));
  return [
    finding("cni-config", "ok", `${join(confDir, used.name)} (${used.plugins.join(", ")})`),
    validity,
    findingOf(
      "cni-version",
      used.version,
      versions.has(used.version) ? undefined : `${used.name} has cniVersion ${JSON.stringify(used.version)}`,
      "warning",
    ),
    findingOf(
      "cni-plugins",
      binDirs.join(", "),
      missing.length === 0 ? undefined : `${missing.join(", ")}: not in ${binDirs.join(" or ")}, or not executable`,
    ),
  ];
}

export async function readCniFacts(host: HostReader, confDir: string, binDirs: readonly string[]): Promise<CniFacts> {
  const names = (await host.list(confDir))?.filter((name) => /\.(?:conflist|conf|json)$/.test(name));
  const files =
    names && (await Promise.all(names.map(async (name) => parse(name, await host.readText(join(confDir, name))))));
  // The runtime uses no loopback configuration, but calls the plugin for every sandbox.
  const plugins = new Set(["loopback", ...(files ?? []).flatMap((file) => file.plugins)]);
  const executables: string[] = [];
  for (const plugin of plugins) {
    for (const directory of binDirs) {
      const path = join(directory, plugin);
      if ((await host.stat(path))?.kind === "file" && (await host.allows(path, "execute"))) executables.push(plugin);
    }
  }
  return { confDir, binDirs, files, executables };
}

type Json = Readonly<Record<string, unknown>>;

function parse(name: string, text: string | undefined): CniFile {
  const unusable = (problem: string): CniFile => ({ name, problem, version: "", plugins: [] });
  if (text === undefined) return unusable("cannot be read");
  let config: Json;
  try {
    config = JSON.parse(text) as Json;
  } catch (error) {
    return unusable((error as Error).message);
  }
  if (typeof config !== "object" || config === null) return unusable("it is not an object");
  if (typeof config.name !== "string" || config.name === "") return unusable("it has no name");
  const isList = name.endsWith(".conflist");
  if (isList && !Array.isArray(config.plugins)) return unusable("it has no list of plugins");
  const all = (isList ? config.plugins : [config]) as readonly Json[];
  const types = all.flatMap((each) => [each?.type, (each?.ipam as Json | undefined)?.type]);
  const plugins = types.filter((type): type is string => typeof type === "string" && type !== "");
  if (plugins.length === 0) return unusable("no plugin has a type");
  const version = typeof config.cniVersion === "string" ? config.cniVersion : "0.2.0";
  return { name, problem: undefined, version, plugins: [...new Set(["loopback", ...plugins])] };
}
