/** For tests: real kubectls, as many as there are, against a server in memory. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { writeKubeconfig } from "../client/kubeconfig.ts";
import { systemClock } from "../std/clock.ts";
import { silentLogger } from "../std/log.ts";
import { type ApiServerConfig, defaultConfig } from "./config.ts";
import { startApiServer } from "./server.ts";

const run = promisify(execFile);
/** A kubectl may have to start from a cold disk. */
const KUBECTL_TIMEOUT_MS = 20_000;

/** Those that SVC_KUBECTLS names (paths, separated by colons), then the PATH's. */
function kubectls(): readonly string[] {
  const named = (process.env.SVC_KUBECTLS ?? "").split(delimiter).filter((path) => path !== "");
  const onPath = (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, "kubectl"));
  return [...new Set([...named, ...onPath.filter(existsSync).slice(0, 1)])];
}

/**
 * The words after `kubectl`, split at blanks, and what it says on either stream. `DIR` holds the files; what a named
 * group of an answer matched stands for its name in later words. `1.27: ` before the words says that older kubectls do
 * not know them, or say it otherwise; what follows from them says so too.
 */
export type Said = readonly [words: string, expected: RegExp];

/** Each kubectl has a server of its own, and types the cases in order; who edits types what `edit` tells sed. */
export function tryKubectls(
  cases: readonly Said[],
  files: Readonly<Record<string, string>>,
  edit = "",
  settings: Partial<ApiServerConfig> = {},
): void {
  const env = { ...process.env, KUBE_EDITOR: `sed -i ${edit}` };
  const found = kubectls();
  if (found.length === 0) t.comment("kubectl is not on this machine: its checks are left out");
  for (const kubectl of found) {
    t.test(`${kubectl} gets along with the server`, async (t) => {
      const dir = await mkdtemp(join(tmpdir(), "svc-kubectl-"));
      t.teardown(() => rm(dir, { recursive: true }));
      await writeFile(join(dir, "tokens"), 'secret,admin,1,"system:masters"\n');
      await using server = await startApiServer(
        {
          ...defaultConfig,
          serving: { ...defaultConfig.serving, certDir: dir },
          authentication: { ...defaultConfig.authentication, tokenFile: join(dir, "tokens") },
          authorizationModes: ["Node", "RBAC"],
          ...settings,
        },
        { clock: systemClock, log: silentLogger },
      );
      const config = join(dir, "config");
      const ca = await readFile(join(dir, "apiserver.crt"), "utf8");
      const address = `https://127.0.0.1:${server.address.port}`;
      await writeKubeconfig(config, { server: address, cluster: "c", user: "u", token: "secret", ca });
      for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
      const known = new Map([["DIR", dir]]);
      const minor = await minorOf(kubectl);
      for (const [written, expected] of cases) {
        const [, since = "0", words = ""] = /^(?:1\.(\d+): )?(.*)$/s.exec(written) ?? [];
        if (minor < Number(since)) continue;
        const asked = [...known].reduce((text, [name, value]) => text.replaceAll(name, value), words).split(" ");
        const args = [`--kubeconfig=${config}`, `--cache-dir=${join(dir, "cache")}`, ...asked];
        // What kubectl says, on whichever stream, is what counts.
        const said = await run(kubectl, args, { timeout: KUBECTL_TIMEOUT_MS, env }).catch((error) => error);
        const answer = `${said.stdout}${said.stderr}`;
        t.match(answer, expected, words);
        for (const [name, value] of Object.entries(expected.exec(answer)?.groups ?? {})) known.set(name, value);
      }
    });
  }
}

async function minorOf(kubectl: string): Promise<number> {
  const { stdout } = await run(kubectl, ["version", "--client", "-o", "json"], { timeout: KUBECTL_TIMEOUT_MS });
  const { clientVersion } = JSON.parse(stdout) as { readonly clientVersion: { readonly minor: string } };
  return Number.parseInt(clientVersion.minor, 10);
}
