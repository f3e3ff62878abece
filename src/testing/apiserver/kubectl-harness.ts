/** Runs real kubectls against in-memory servers, one for each kubectl. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import t, { type Test } from "tap";
import type { ApiServerConfig } from "../../apiserver/config/config.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { startApiServer } from "../../apiserver/server.ts";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { kubectlPaths } from "./kubectl-paths.ts";

/** Includes a start from a cold disk. */
const KUBECTL_TIMEOUT_MS = 30_000;
const RETRY_TIMEOUT_MS = 20_000;
const RETRY_INTERVAL_MS = 100;
const CONCURRENT_KUBECTLS = 2;
const SUITE_TIMEOUT_MS = 290_000;

interface Kubectl {
  readonly path: string;
  /** 33 of 1.33. */
  readonly minor: number;
}

/**
 * A command line of kubectl and its expected output on either stream.
 *
 * Words are split at blanks, except between single quotes. `DIR` is the directory of the files; the name of a named
 * group of the expression is replaced by its match in later command lines. The prefix `1.27: ` skips older kubectls.
 */
export type KubectlOutput = readonly [words: string, expected: RegExp, more?: KubectlOptions];

interface KubectlOptions {
  readonly input?: string;
  /** A sed expression that replaces the editor. */
  readonly editor?: string;
  /** The exit code; not checked when absent. */
  readonly code?: number;
  /** Repeat the command until the output is as expected. */
  readonly until?: true;
}

export interface KubectlSettings {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly serverConfig?: Partial<ApiServerConfig>;
  /** Names that are replaced in command lines. */
  readonly names?: Readonly<Record<string, string>>;
  /** Runs after the cases. */
  readonly afterCases?: (t: Test, session: KubectlSession) => Promise<void>;
}

/**
 * Runs the cases in order with each kubectl and its own server. SVC_KUBECTL selects kubectls: the newest by default,
 * `ends` for the oldest and the newest, or `all`.
 */
export function testWithKubectls(cases: readonly KubectlOutput[], settings: KubectlSettings = {}): void {
  t.setTimeout(SUITE_TIMEOUT_MS);
  t.test("kubectl prints the expected output", { timeout: SUITE_TIMEOUT_MS }, async (t) => {
    const found = await findKubectls();
    if (found.length === 0) t.comment("kubectl is not installed: its checks are skipped");
    t.jobs = CONCURRENT_KUBECTLS;
    const runs = found.map((kubectl) =>
      t.test(`${kubectl.path}`, { buffered: true, timeout: SUITE_TIMEOUT_MS }, async (t) => {
        await using session = await KubectlSession.start(kubectl, settings);
        for (const output of cases) await session.check(t, output);
        await settings.afterCases?.(t, session);
      }),
    );
    await Promise.all(runs);
  });
}

interface KubectlResult {
  readonly code: number | null;
  readonly text: string;
}

export class KubectlSession implements AsyncDisposable {
  readonly minor: number;
  readonly dir: string;
  readonly #kubectl: Kubectl;
  readonly #server: AsyncDisposable;
  readonly #names: Map<string, string>;

  private constructor(kubectl: Kubectl, dir: string, server: AsyncDisposable, names: Map<string, string>) {
    this.#kubectl = kubectl;
    this.minor = kubectl.minor;
    this.dir = dir;
    this.#server = server;
    this.#names = names;
  }

  static async start(
    kubectl: Kubectl,
    { files = {}, serverConfig: server = {}, names = {} }: KubectlSettings,
  ): Promise<KubectlSession> {
    const dir = await mkdtemp(join(tmpdir(), "svc-kubectl-"));
    await writeFile(join(dir, "tokens"), 'secret,admin,1,"system:masters"\n');
    const config = {
      ...defaultConfig,
      serving: { ...defaultConfig.serving, certDir: dir },
      authentication: { ...defaultConfig.authentication, tokenFile: join(dir, "tokens") },
      authorizationModes: ["Node", "RBAC"],
      ...server,
    };
    const running = await startApiServer(config, { clock: systemClock, log: silentLogger });
    const ca = await readFile(join(dir, "apiserver.crt"), "utf8");
    const address = `https://127.0.0.1:${running.address.port}`;
    await writeKubeconfig(join(dir, "config"), { server: address, cluster: "c", user: "u", token: "secret", ca });
    for (const [name, content] of Object.entries(files)) {
      await mkdir(dirname(join(dir, name)), { recursive: true });
      await writeFile(join(dir, name), content, { mode: 0o755 });
    }
    const known = new Map(Object.entries({ DIR: dir, SERVER: address, ...names }));
    return new KubectlSession(kubectl, dir, running, known);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
    await rm(this.dir, { recursive: true });
  }

  async check(t: Test, [written, expected, more = {}]: KubectlOutput): Promise<void> {
    const [, since = "0", words = ""] = /^(?:1\.(\d+): )?(.*)$/s.exec(written) ?? [];
    if (this.minor < Number(since)) return;
    const isExpected = ({ code, text }: KubectlResult): boolean =>
      expected.test(text) && (more.code === undefined || more.code === code);
    const deadline = performance.now() + RETRY_TIMEOUT_MS;
    let response = await this.run(words, more);
    while (more.until === true && !isExpected(response) && performance.now() < deadline) {
      await systemClock.sleep(RETRY_INTERVAL_MS);
      response = await this.run(words, more);
    }
    t.match(response.text, expected, words);
    if (more.code !== undefined) t.equal(response.code, more.code, `code of ${words}`);
    for (const [name, value] of Object.entries(expected.exec(response.text)?.groups ?? {}))
      this.#names.set(name, value);
  }

  /** Runs kubectl; returns the output of both streams. */
  async run(words: string, { input, editor }: KubectlOptions = {}): Promise<KubectlResult> {
    using output = this.follow(words, editor);
    output.child.stdin?.end(input === undefined ? undefined : this.#replaceNames(input));
    const code = await output.ended;
    return { code, text: output.text };
  }

  /** Starts a kubectl that may not end by itself; the caller disposes it. */
  follow(words: string, editor = ""): KubectlProcess {
    const home = {
      HOME: this.dir,
      PATH: [process.env.PATH, this.dir].join(delimiter),
      KUBECONFIG: `${this.dir}/config`,
    };
    const env = { ...process.env, ...home, KUBE_EDITOR: `sed -i ${editor}`, KUBECTL_APPLYSET: "true" };
    const args = splitWords(this.#replaceNames(words));
    return new KubectlProcess(spawn(this.#kubectl.path, args, { env, timeout: KUBECTL_TIMEOUT_MS, cwd: this.dir }));
  }

  #replaceNames(text: string): string {
    return [...this.#names].reduce((all, [name, value]) => all.replaceAll(name, value), text);
  }
}

export class KubectlProcess implements Disposable {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  #out = "";
  #err = "";

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      this.#out += chunk;
    });
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      this.#err += chunk;
    });
    const { promise, resolve, reject } = Promise.withResolvers<number | null>();
    this.ended = promise;
    promise.catch(() => {});
    child.on("error", reject).on("close", resolve);
  }

  /** Standard output, then standard error. */
  get text(): string {
    return this.#out + this.#err;
  }

  /** Resolves with the output when it matches, or after a timeout. */
  async waitForOutput(wanted: RegExp): Promise<string> {
    const deadline = performance.now() + RETRY_TIMEOUT_MS;
    while (!wanted.test(this.text) && performance.now() < deadline) await systemClock.sleep(RETRY_INTERVAL_MS);
    return this.text;
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
  }
}

function splitWords(text: string): readonly string[] {
  return [...text.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ""));
}

/** The kubectls that SVC_KUBECTL selects, oldest first. */
async function findKubectls(): Promise<readonly Kubectl[]> {
  const byMinor = new Map<number, Kubectl>();
  for (const path of kubectlPaths()) {
    const minor = await readMinorVersion(path);
    byMinor.set(minor, { path, minor });
  }
  const sorted = [...byMinor.values()].sort((a, b) => a.minor - b.minor);
  switch (process.env.SVC_KUBECTL) {
    case "all":
      return sorted;
    case "ends":
      return sorted.filter((_, i) => i === 0 || i === sorted.length - 1);
    default:
      return sorted.slice(-1);
  }
}

async function readMinorVersion(path: string): Promise<number> {
  using process = new KubectlProcess(
    spawn(path, ["version", "--client", "-o", "json"], { timeout: KUBECTL_TIMEOUT_MS }),
  );
  await process.ended;
  const { clientVersion } = JSON.parse(process.text) as { readonly clientVersion: { readonly minor: string } };
  return Number.parseInt(clientVersion.minor, 10);
}
