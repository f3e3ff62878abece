/** Terminals of exec and attach, typed into by tmux: vi, sizes, Ctrl-C, exit codes, detaching. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { findPrograms, kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";
import { endsOf } from "./kubectl-sessions.ts";

const RUN_MS_MAX = 180_000;

const missing = findMissingRequirement() ?? (findPrograms("tmux").length === 0 ? "tmux is not installed" : undefined);

t.setTimeout(RUN_MS_MAX);
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("terminals in containers", { timeout: RUN_MS_MAX }, async (t) => {
    const { SVC_PROGRAM: selected = "bundle" } = process.env;
    await using cluster = await TestCluster.create({ program: programs[selected as keyof typeof programs] });
    await cluster.start("--stop-pods");
    await createPod(cluster);
    for (const { path } of await endsOf(kubectlPaths())) {
      await t.test(`exec, ${path}`, (t) => testExec(t, cluster, path));
      await t.test(`attach, ${path}`, (t) => testAttach(t, cluster, path));
    }
  });
}

async function createPod(cluster: TestCluster): Promise<void> {
  const container = { name: "c", image: exampleImage, command: ["sh"], stdin: true, tty: true };
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec };
  await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(pod) });
  await cluster.kubectl(["wait", "--for=condition=Ready", "pod/p", "--timeout=60s"]);
}

/** A terminal of 80 columns and 24 rows that runs a shell of this machine, which runs a line. */
class Terminal implements AsyncDisposable {
  readonly #cluster: TestCluster;
  readonly #name: string;

  private constructor(cluster: TestCluster, name: string) {
    this.#cluster = cluster;
    this.#name = name;
  }

  static async open(cluster: TestCluster, line: string): Promise<Terminal> {
    const terminal = new Terminal(cluster, `svc-${randomUUID()}`);
    await terminal.#tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c", line);
    return terminal;
  }

  /** Types keys by tmux's names, `C-c`, or the characters of a text. */
  async type(...keys: readonly string[]): Promise<void> {
    await this.#tmux("send-keys", ...keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  async screen(): Promise<string> {
    return await this.#tmux("capture-pane", "-p");
  }

  /** Resolves with what the screen shows, once that matches. */
  async shows(pattern: RegExp): Promise<string> {
    let screen = "";
    return await until(
      () => `${pattern} on the screen, which shows:\n${screen}`,
      async () => {
        screen = await this.screen();
        return pattern.test(screen) ? screen : undefined;
      },
      { timeoutMs: 15_000 },
    );
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const { env } = this.#cluster;
    const { code, stdout, stderr } = await command("tmux", ["-L", this.#name, ...args], { env });
    if (code !== 0) throw new Error(`tmux ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux("kill-server");
  }
}

async function testExec(t: Test, cluster: TestCluster, binary: string): Promise<void> {
  await using terminal = await Terminal.open(cluster, `${binary} exec -it p -- sh; echo code=$?; sleep 600`);
  const enter = (line: string) => terminal.type(line, "Enter");
  await terminal.shows(/#\s*$/m);
  await enter("busybox stty size");
  await terminal.shows(/^24 80$/m);
  await terminal.resize(100, 40);
  await until("the new size", async () => {
    await enter("clear; busybox stty size");
    return /^40 100$/m.test(await terminal.screen());
  });
  t.pass("the size is that of the terminal, also when it changes");

  await enter("clear; busybox vi /tmp/$$");
  await terminal.shows(/^~\s*$/m);
  await terminal.type("i", "one two", "Enter", "three", "Escape");
  // vi takes a key that follows at once for a part of the same sequence.
  await sleep(500);
  await terminal.type("k", "0", "d", "w", ":", "w", "q", "Enter");
  await terminal.shows(/# *\s*$/);
  // The shell discards what is typed while it waits for the position of the cursor.
  await sleep(500);
  await enter("clear; cat /tmp/$$; echo end");
  await terminal.shows(/^two\nthree\nend$/m);
  t.pass("vi edits a file");

  await enter("clear; echo begun; sleep 1000");
  await terminal.shows(/^begun$/m);
  await terminal.type("C-c");
  await enter("echo status $?");
  await terminal.shows(/^status 130$/m);
  t.pass("Ctrl-C interrupts the command and not the session");

  await enter("exit 7");
  await terminal.shows(/^code=7$/m);
  t.pass("the exit code of the shell is that of kubectl");
}

async function testAttach(t: Test, cluster: TestCluster, binary: string): Promise<void> {
  const open = async (): Promise<Terminal> => {
    const terminal = await Terminal.open(cluster, `${binary} attach -it p -c c; echo code=$?; sleep 600`);
    // The prompt was printed before.
    await until("the prompt", async () => {
      await terminal.type("Enter");
      return /#\s*$/m.test(await terminal.screen());
    });
    return terminal;
  };
  {
    await using terminal = await open();
    await terminal.type("word=kept; clear; busybox stty size", "Enter");
    await terminal.shows(/^24 80$/m);
  }
  {
    // The first terminal has been closed with kubectl.
    await using terminal = await open();
    await terminal.type("clear; echo $word again", "Enter");
    await terminal.shows(/^kept again$/m);
  }
  t.pass("the shell goes on after a terminal is closed, and the next one attaches to it");
}
