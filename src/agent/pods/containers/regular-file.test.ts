import { execFileSync } from "node:child_process";
import { link, mkdir, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { LogChanges } from "../../logs/log-changes.ts";
import { readLog } from "../../logs/log-reader.ts";
import { RemovedLogs } from "../../logs/removed-logs.ts";
import { annotations, type ObservedContainer } from "../../runtime/observation.ts";
import { openLog } from "./regular-file.ts";
import { addTerminationMessage } from "./termination-message.ts";

const SECRET = "2026-01-01T00:00:00.000000000Z stdout F the host's secret\n";
const all = { follow: false, tailLines: undefined, since: undefined, timestamps: false, limitBytes: undefined };

/** Replacements of a log by a pod that can write to the host's `/var/log`, and whether the agent reads them. */
const tricks: Readonly<
  Record<string, readonly [put: (logs: string, host: string) => Promise<unknown>, read: boolean]>
> = {
  "nothing else": [(logs) => writeFile(join(logs, "pods/pod/c/0.log"), SECRET), true],
  "a link to a file": [(logs, host) => symlink(join(host, "c/0.log"), join(logs, "pods/pod/c/0.log")), false],
  "a link to a file beside it": [
    async (logs) => {
      await writeFile(join(logs, "pods/pod/c/1.log"), SECRET);
      await symlink("1.log", join(logs, "pods/pod/c/0.log"));
    },
    false,
  ],
  "a link to a directory": [
    async (logs, host) => {
      await rename(join(logs, "pods/pod/c"), join(logs, "pods/pod/before"));
      await symlink(join(host, "c"), join(logs, "pods/pod/c"));
    },
    false,
  ],
  "a link to a directory of directories": [
    async (logs, host) => {
      await rename(join(logs, "pods/pod"), join(logs, "before"));
      await symlink(host, join(logs, "pods/pod"));
    },
    false,
  ],
  "a link by which an operator has moved all logs elsewhere": [
    async (logs) => {
      await rename(join(logs, "pods"), join(logs, "elsewhere"));
      await symlink(join(logs, "elsewhere"), join(logs, "pods"));
      await writeFile(join(logs, "elsewhere/pod/c/0.log"), SECRET);
    },
    true,
  ],
  "a pipe": [async (logs) => execFileSync("mkfifo", [join(logs, "pods/pod/c/0.log")]), false],
  "a directory": [(logs) => mkdir(join(logs, "pods/pod/c/0.log")), false],
  "another name of a file": [
    async (logs) => {
      await writeFile(join(logs, "pods/pod/c/1.log"), SECRET);
      await link(join(logs, "pods/pod/c/1.log"), join(logs, "pods/pod/c/0.log"));
    },
    true,
  ],
};

for (const [what, [put, isRead]] of Object.entries(tricks)) {
  t.test(`openLog() does not follow a pod's symbolic link out of the log directory: ${what}`, async (t) => {
    const logs = t.testdir({ pods: { pod: { c: {} } }, host: { c: { "0.log": SECRET } } });
    await put(logs, join(logs, "host"));
    const path = join(logs, "pods/pod/c/0.log");
    const changes = new LogChanges(systemClock);
    const { signal } = new AbortController();
    const removed = new RemovedLogs(silentLogger);
    const source = { path, clock: systemClock, changes, removed, signal, running: () => false };
    const read = async (): Promise<string> => {
      let text = "";
      for await (const chunk of readLog(source, all)) text += Buffer.from(chunk).toString();
      return text;
    };
    if (isRead) t.equal(await read(), "the host's secret\n");
    else {
      await t.rejects(openLog(path), "not opened");
      await t.rejects(read(), "not sent to clients");
    }
    const ended = {
      state: "exited",
      exitCode: 1,
      message: "",
      mounts: [],
      logPath: path,
    } as Partial<ObservedContainer>;
    const values = { [annotations.terminationMessagePolicy]: "FallbackToLogsOnError" };
    const { message } = await addTerminationMessage({ ...ended, annotations: values } as ObservedContainer, 1);
    t.equal(message, isRead ? "the host's secret\n" : "", "not in the termination message");
  });
}

t.test("addTerminationMessage() reads the agent's own file, whatever the pod has mounted at its path", async (t) => {
  const directory = t.testdir({ own: "a message", host: "the host's secret" });
  await symlink(join(directory, "host"), join(directory, "link"));
  const ended = { state: "exited", exitCode: 0, message: "", logPath: "" } as Partial<ObservedContainer>;
  const values = { [annotations.terminationMessagePath]: "/dev/message" };
  const mounts = (...names: readonly string[]) => ({
    ...ended,
    annotations: values,
    mounts: names.map((name) => ({ containerPath: "/dev/message", hostPath: join(directory, name) })),
  });
  const read = async (...names: readonly string[]) =>
    (await addTerminationMessage(mounts(...names) as unknown as ObservedContainer, 1)).message;
  t.equal(await read("own"), "a message");
  t.equal(await read("host", "own"), "a message");
  t.equal(await read("link"), "");
});

t.test("PodWorker creates files that every user in the containers can read, and can write if intended", async (t) => {
  const before = process.umask(0o077);
  t.teardown(() => void process.umask(before));
  await using harness = await podHarness();
  harness.manager.put(testPod("web"));
  await harness.run(1);
  const [run] = harness.manager.worker("uid-web")?.observation.containers ?? [];
  const modeOf = async (path: string): Promise<number> => {
    const file = run?.mounts.find(({ containerPath }) => containerPath === path)?.hostPath ?? "";
    return (await stat(file)).mode & 0o777;
  };
  t.equal(await modeOf("/dev/termination-log"), 0o666);
  t.equal(await modeOf("/etc/hosts"), 0o644);
});
