/**
 * One file, several programs: the name it is invoked by or the first word selects one. The code of a program is loaded
 * when it runs, so that `svc version` stays cheap.
 */
import { basename } from "node:path";
import { BUILD, GIT_VERSION, KUBERNETES_VERSION, PRODUCT_VERSION } from "./std/version.ts";

type Run = (argv: readonly string[]) => Promise<number>;

interface Command {
  readonly summary: string;
  readonly load: () => Promise<Run>;
}

const commands: Readonly<Record<string, Command>> = {
  up: {
    summary: "run a whole one-node cluster on this machine",
    load: async () => (await import("./up/command.ts")).run,
  },
  apiserver: {
    summary: "serve the cluster's API",
    load: async () => {
      const { run } = await import("./apiserver/command.ts");
      // Only the check of configuration files loads those of the agent.
      const fileKinds = async () => (await import("./agent/config/check-kinds.ts")).agentFileKinds;
      return (argv) => run(argv, { fileKinds });
    },
  },
  agent: {
    summary: "run a node's pods (also when called as svclet)",
    load: async () => {
      const { run } = await import("./agent/command.ts");
      // Only an agent without an API server loads the handlers of the API.
      const nodeApi = async () => (await import("./apiserver/node-api.ts")).createNodeApi;
      return (argv) => run(argv, { nodeApi });
    },
  },
  scheduler: {
    summary: "assign pods to nodes (also when called as kube-scheduler)",
    load: async () => (await import("./scheduler/command.ts")).run,
  },
  "controller-manager": {
    summary: "run the controllers of a cluster (also when called as kube-controller-manager)",
    load: async () => (await import("./controller-manager/command.ts")).run,
  },
  proxy: {
    summary: "make services lead to their pods on this machine (also when called as kube-proxy)",
    load: async () => (await import("./proxy/command/command.ts")).run,
  },
  token: {
    summary: "let another machine join the cluster",
    load: async () => (await import("./up/commands/token.ts")).run,
  },
  webhooks: {
    summary: "suspend admission webhooks while the API server is stopped",
    load: async () => (await import("./up/commands/webhooks.ts")).run,
  },
  kvstore: {
    summary: "check, copy, repair and migrate the store of an API server",
    load: async () => (await import("./up/commands/kvstore.ts")).run,
  },
  doctor: {
    summary: "find what stops a cluster or its pods on this machine",
    load: async () => (await import("./up/commands/doctor.ts")).run,
  },
  completion: {
    summary: "print a completion script for bash, zsh or fish",
    load: async () => (await import("./up/commands/completion.ts")).run,
  },
  licenses: {
    summary: "print the licenses of the software that this file contains",
    load: async () => (await import("./up/commands/licenses.ts")).run,
  },
  version: { summary: "print the version", load: async () => version },
};

/** The first word of a thread of the API server. */
const API_WORKER = "apiserver-worker";

const EXIT_FATAL = 255;

async function version(argv: readonly string[]): Promise<number> {
  const output = argv.join(" ").replace(/^(?:-o|--output)[= ]/, "");
  if (output === "json") {
    const versions = { svc: PRODUCT_VERSION, kubernetes: KUBERNETES_VERSION, gitVersion: GIT_VERSION, ...BUILD };
    process.stdout.write(`${JSON.stringify(versions)}\n`);
    return 0;
  }
  if (output === "--help" || output === "-h") {
    process.stdout.write("Usage: svc version [--output json]\n");
    return 0;
  }
  if (argv.length > 0) {
    process.stderr.write(`svc version: unknown argument ${JSON.stringify(argv[0])}; allowed: --output json\n`);
    return 1;
  }
  process.stdout.write(`svc ${PRODUCT_VERSION} (Kubernetes ${KUBERNETES_VERSION.slice(1)})\n`);
  return 0;
}

async function dispatch(invokedAs: string, argv: readonly string[]): Promise<number> {
  if (invokedAs === "svclet") return (await commands.agent!.load())(argv);
  if (invokedAs === "kube-proxy") return (await commands.proxy!.load())(argv);
  if (invokedAs === "kube-scheduler") return (await commands.scheduler!.load())(argv);
  if (invokedAs === "kube-controller-manager") return (await commands["controller-manager"]!.load())(argv);
  const [word = "", ...rest] = argv;
  if (word === API_WORKER) return await (await import("./apiserver/workers/worker-command.ts")).run();
  if (word === "--version") return await version(rest);
  if (word === "help" && rest.length > 0) return await dispatch(invokedAs, [...rest, "--help"]);
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined;
  return command === undefined ? await printUsage(word) : (await command.load())(rest);
}

/** Prints all commands, below an error when the word is neither empty nor a request for help. */
async function printUsage(word: string): Promise<number> {
  const { renderCommands, selectCommand } = await import("./flags/commands.ts");
  const usages = Object.entries(commands).map(([command, { summary }]) => ({ command, summary }));
  const list = await renderCommands("svc", usages, process.stdout.columns ?? 100);
  const help = `${list}\nsvc help COMMAND shows the flags of a command.\n`;
  if (["", "help", "-h", "--help"].includes(word)) {
    process.stdout.write(help);
    return word === "" ? 1 : 0;
  }
  const problem = await selectCommand("svc", usages, [word]).catch((error: Error) => error.message);
  process.stderr.write(`svc: ${problem}\n\n${help}`);
  return 1;
}

function fatal(error: unknown): never {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`svc: fatal: ${text}\n`);
  process.exit(EXIT_FATAL);
}

/** Exits after the output is written: writes to a pipe of more than its capacity are asynchronous. */
function exit(code: number): void {
  if (process.stdout.writableLength === 0) process.exit(code);
  process.stdout.write("", () => process.exit(code));
}

process.on("uncaughtException", fatal);
process.on("unhandledRejection", fatal);
dispatch(basename(process.argv[1] ?? "svc"), process.argv.slice(2)).then(exit, fatal);
