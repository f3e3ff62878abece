/**
 * Shims without a container, which an interrupted start of a container can leave. containerd does not track them; each
 * uses some megabytes until the machine is rebooted.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const NAMESPACE = "k8s.io";

export interface Shim {
  readonly pid: number;
  readonly containerId: string;
}

/** Shims of the containerd at this socket whose directory is gone. Valid only while that containerd is stopped. */
export function findLeakedShims(socket: string, state: string): readonly Shim[] {
  const bundles = join(state, "io.containerd.runtime.v2.task", NAMESPACE);
  return processes().flatMap(({ pid, words }) => {
    const containerId = shimOf(words, socket);
    return containerId === undefined || existsSync(join(bundles, containerId)) ? [] : [{ pid, containerId }];
  });
}

/** The container of a shim, by its command line; undefined for other programs and for shims of another containerd. */
export function shimOf(words: readonly string[], socket: string): string | undefined {
  const after = (flag: string): string | undefined => words[words.indexOf(flag) + 1];
  if (!/(?:^|\/)containerd-shim-runc-v2$/.test(words[0] ?? "") || !words.includes("-id")) return undefined;
  if (after("-address") !== socket || after("-namespace") !== NAMESPACE) return undefined;
  return after("-id");
}

function processes(): readonly { readonly pid: number; readonly words: readonly string[] }[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return [{ pid: Number(name), words: readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0") }];
    } catch {
      return [];
    }
  });
}
