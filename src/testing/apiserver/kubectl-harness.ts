/** For tests: real kubectls against servers in memory, one each. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, realpathSync } from "node:fs";
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

/** A kubectl may have to start from a cold disk. */
const KUBECTL_TIMEOUT_MS = 30_000;
const RETRY_MS_MAX = 20_000;
const RETRY_EVERY_MS = 100;
/** Kubectls at work at the same time. */
const AT_ONCE = 2;
const SUITE_MS_MAX = 290_000;

interface Kubectl {
  readonly path: string;
  /** 33 of 1.33. */
  readonly minor: number;
}

/**
 * What is typed, and what kubectl then says on either stream.
 *
 * Words are split at blanks, except between single quotes. `DIR` holds the files; what a named group of an answer
 * matched stands for its name in later words. `1.27: ` before the words says that older kubectls do not know them, or
 * say it otherwise; what follows from them says so too.
 */
export type KubectlOutput = readonly [words: string, expected: RegExp, more?: More];

interface More {
  readonly input?: string;
  /** A sed expression that serves as the editor. */
  readonly editor?: string;
  /** How it ends; unchecked when absent. */
  readonly code?: number;
  /** Asked again until it answers so: it takes a moment to come true. */
  readonly until?: true;
}

export interface KubectlSettings {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly server?: Partial<ApiServerConfig>;
  /** Names that stand for something in the words. */
  readonly names?: Readonly<Record<string, string>>;
  /** What is tried after the cases. */
  readonly afterwards?: (t: Test, session: KubectlSession) => Promise<void>;
}

/**
 * Each kubectl has a server of its own, and types the cases in order. SVC_KUBECTL says which are tried of those there
 * are: the newest when absent, `ends` for the oldest as well, `all`.
 */
export function tryKubectls(cases: readonly KubectlOutput[], settings: KubectlSettings = {}): void {
  t.setTimeout(SUITE_MS_MAX);
  t.test("kubectl gets along with the server", { timeout: SUITE_MS_MAX }, async (t) => {
    const found = await kubectls();
    if (found.length === 0) t.comment("kubectl is not on this machine: its checks are left out");
    t.jobs = AT_ONCE;
    const tried = found.map((kubectl) =>
      t.test(`${kubectl.path}`, { buffered: true, timeout: SUITE_MS_MAX }, async (t) => {
        await using session = await KubectlSession.start(kubectl, settings);
        for (const output of cases) await session.says(t, output);
        await settings.afterwards?.(t, session);
      }),
    );
    await Promise.all(tried);
  });
}

interface Answer {
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
    { files = {}, server = {}, names = {} }: KubectlSettings,
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

  async says(t: Test, [written, expected, more = {}]: KubectlOutput): Promise<void> {
    const [, since = "0", words = ""] = /^(?:1\.(\d+): )?(.*)$/s.exec(written) ?? [];
    if (this.minor < Number(since)) return;
    const isRight = ({ code, text }: Answer): boolean =>
      expected.test(text) && (more.code === undefined || more.code === code);
    const deadline = performance.now() + RETRY_MS_MAX;
    let answer = await this.run(words, more);
    while (more.until === true && !isRight(answer) && performance.now() < deadline) {
      await systemClock.sleep(RETRY_EVERY_MS);
      answer = await this.run(words, more);
    }
    t.match(answer.text, expected, words);
    if (more.code !== undefined) t.equal(answer.code, more.code, `code of ${words}`);
    for (const [name, value] of Object.entries(expected.exec(answer.text)?.groups ?? {})) this.#names.set(name, value);
  }

  /** What kubectl says, on whichever stream, is what counts. */
  async run(words: string, { input, editor }: More = {}): Promise<Answer> {
    using output = this.follow(words, editor);
    output.child.stdin?.end(input === undefined ? undefined : this.#replaced(input));
    const code = await output.ended;
    return { code, text: output.text };
  }

  /** A kubectl that may not end by itself; who starts it disposes of it. */
  follow(words: string, editor = ""): Following {
    const home = {
      HOME: this.dir,
      PATH: [process.env.PATH, this.dir].join(delimiter),
      KUBECONFIG: `${this.dir}/config`,
    };
    const env = { ...process.env, ...home, KUBE_EDITOR: `sed -i ${editor}`, KUBECTL_APPLYSET: "true" };
    const args = wordsOf(this.#replaced(words));
    return new Following(spawn(this.#kubectl.path, args, { env, timeout: KUBECTL_TIMEOUT_MS, cwd: this.dir }));
  }

  #replaced(text: string): string {
    return [...this.#names].reduce((all, [name, value]) => all.replaceAll(name, value), text);
  }
}

export class Following implements Disposable {
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

  /** What it said: its answer, then what else it has to say. */
  get text(): string {
    return this.#out + this.#err;
  }

  /** Resolves with all it said, once that matches or it is too late. */
  async prints(wanted: RegExp): Promise<string> {
    const deadline = performance.now() + RETRY_MS_MAX;
    while (!wanted.test(this.text) && performance.now() < deadline) await systemClock.sleep(RETRY_EVERY_MS);
    return this.text;
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
  }
}

function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ""));
}

/** By age; of those that SVC_KUBECTLS names (paths, separated by colons), the PATH's, and others that lie beside it. */
async function kubectls(): Promise<readonly Kubectl[]> {
  const named = (process.env.SVC_KUBECTLS ?? "").split(delimiter).filter((path) => path !== "");
  const onPath = (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, "kubectl"));
  const first = onPath.filter(existsSync).slice(0, 1);
  const beside = first
    .map((path) => dirname(realpathSync(path)))
    .flatMap((directory) => {
      const names = readdirSync(directory).filter((name) => /^kubectl[.-]v?\d+\.\d+$/.test(name));
      return names.map((name) => join(directory, name));
    });
  const byMinor = new Map<number, Kubectl>();
  for (const path of [...first, ...named, ...beside]) {
    const minor = await minorOf(path);
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

async function minorOf(path: string): Promise<number> {
  using asked = new Following(spawn(path, ["version", "--client", "-o", "json"], { timeout: KUBECTL_TIMEOUT_MS }));
  await asked.ended;
  const { clientVersion } = JSON.parse(asked.text) as { readonly clientVersion: { readonly minor: string } };
  return Number.parseInt(clientVersion.minor, 10);
}
