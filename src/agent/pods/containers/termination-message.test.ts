import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { annotations, type ObservedContainer } from "../../runtime/observation.ts";
import { addTerminationMessage } from "./termination-message.ts";

type Part = readonly [tag: "F" | "P", content: string, stream?: string];

/** The message of a container that failed with this log. */
async function messageOf(t: Test, parts: readonly Part[], exitCode = 1): Promise<string | undefined> {
  const logPath = join(t.testdir(), "pod/c/0.log");
  mkdirSync(join(logPath, ".."), { recursive: true });
  const time = "2026-11-21T03:32:07.123456789Z";
  const lines = parts.map(([tag, content, stream = "stdout"]) => `${time} ${stream} ${tag} ${content}\n`);
  writeFileSync(logPath, lines.join(""));
  const policy = { [annotations.terminationMessagePolicy]: "FallbackToLogsOnError" };
  const ended = { state: "exited", exitCode, annotations: policy, mounts: [], logPath, message: "" };
  return (await addTerminationMessage(ended as unknown as ObservedContainer, 1)).message;
}

const long = (length: number, character: string): string => character.repeat(length);

for (const { name, log, message } of [
  {
    name: "lines",
    log: [
      ["F", "a"],
      ["F", "b", "stderr"],
    ],
    message: "a\nb\n",
  },
  {
    name: "empty lines",
    log: [
      ["F", ""],
      ["F", "b"],
    ],
    message: "\nb\n",
  },
  {
    name: "parts of a line",
    log: [
      ["P", "a"],
      ["P", "b"],
      ["F", "c"],
      ["F", "d"],
    ],
    message: "abc\nd\n",
  },
  {
    name: "a last line without its end",
    log: [
      ["F", "a"],
      ["P", "b"],
    ],
    message: "a\nb",
  },
  {
    name: "a line in parts of 16 KiB",
    log: [
      ["P", long(16_384, "a")],
      ["P", long(16_384, "b")],
      ["F", "end"],
    ],
    message: `${long(2044, "b")}end\n`,
  },
  {
    name: "parts, which count as lines",
    log: [["F", "first"], ...Array.from({ length: 80 }, (_, index): Part => [index === 79 ? "F" : "P", "x"])],
    message: `${long(80, "x")}\n`,
  },
  { name: "no output", log: [], message: "" },
] as const satisfies readonly { readonly name: string; readonly log: readonly Part[]; readonly message: string }[]) {
  t.test(`addTerminationMessage() falls back to the log: ${name}`, async (t) => {
    t.equal(await messageOf(t, log), message);
    t.equal(await messageOf(t, log, 0), "", "not for a container that succeeded");
  });
}

t.test(
  "addTerminationMessage() appends the file to the runtime's message, and limits both by the pod's containers",
  async (t) => {
    const directory = t.testdir({ file: `${"a".repeat(1904)}${"b".repeat(4096)}`, short: "own" });
    const messageOfFile = async (name: string, message: string, containers: number): Promise<string> => {
      const mounts = [{ containerPath: "/m", hostPath: join(directory, name) }];
      const values = { [annotations.terminationMessagePath]: "/m" };
      const ended = { state: "exited", exitCode: 0, annotations: values, mounts, logPath: "", message };
      return (await addTerminationMessage(ended as unknown as ObservedContainer, containers)).message;
    };
    t.equal(await messageOfFile("short", "failed", 1), "failed: own");
    t.equal(await messageOfFile("file", "", 3), "b".repeat(4096));
    t.equal(await messageOfFile("file", "failed", 6), `failed: ${"b".repeat(2040)}`);
  },
);
