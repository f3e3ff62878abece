/**
 * One file, several programs: the name it was called by or the first word says which. Each program's code is loaded
 * only when it runs, so that `svc version` costs next to nothing.
 */
import { basename } from "node:path";
import { GIT_VERSION, KUBERNETES_VERSION, PRODUCT_VERSION } from "./std/version.ts";

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
    load: async () => (await import("./apiserver/command.ts")).run,
  },
  agent: {
    summary: "run a node's pods (also when called as svclet)",
    load: async () => {
      const { run } = await import("./agent/command.ts");
      // Nodes without an API server answer reading requests, and none of the others load what that takes.
      const nodeApi = async () => (await import("./apiserver/node-api.ts")).createNodeApi;
      return (argv) => run(argv, { nodeApi });
    },
  },
  token: {
    summary: "let another machine join the cluster",
    load: async () => (await import("./up/commands/token.ts")).run,
  },
  webhooks: {
    summary: "suspend admission webhooks while the API server is stopped",
    load: async () => (await import("./up/commands/webhooks.ts")).run,
  },
  completion: {
    summary: "print a completion script for bash, zsh or fish",
    load: async () => (await import("./up/commands/completion.ts")).run,
  },
  version: { summary: "print the version", load: async () => version },
};

const EXIT_FATAL = 255;

async function version(argv: readonly string[]): Promise<number> {
  const output = argv.join(" ").replace(/^(?:-o|--output)[= ]/, "");
  if (output === "json") {
    process.stdout.write(
      `${JSON.stringify({ svc: PRODUCT_VERSION, kubernetes: KUBERNETES_VERSION, gitVersion: GIT_VERSION })}\n`,
    );
    return 0;
  }
  if (argv.length > 0) {
    process.stderr.write(`svc version: unknown argument ${JSON.stringify(argv[0])}; allowed: --output json\n`);
    return 1;
  }
  process.stdout.write(`svc ${PRODUCT_VERSION} (Kubernetes ${KUBERNETES_VERSION.slice(1)})\n`);
  return 0;
}

function usage(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: svc COMMAND [flags]\n\nCommands:\n${lines.join("\n")}\n\nsvc COMMAND --help tells the flags of each.\n`;
}

async function dispatch(invokedAs: string, argv: readonly string[]): Promise<number> {
  if (invokedAs === "svclet") return (await commands.agent!.load())(argv);
  const [word = "", ...rest] = argv;
  if (word === "" || word === "help" || word === "-h" || word === "--help") {
    process.stdout.write(usage());
    return word === "" ? 1 : 0;
  }
  if (word === "--version") return version(rest);
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (command !== undefined) return (await command.load())(rest);
  const { nearest } = await import("./flags/distance.ts");
  const guess = nearest(word, Object.keys(commands));
  process.stderr.write(
    `svc: unknown command ${JSON.stringify(word)}${guess === undefined ? "" : `; did you mean ${guess}?`}\n\n${usage()}`,
  );
  return 1;
}

function fatal(error: unknown): never {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`svc: fatal: ${text}\n`);
  process.exit(EXIT_FATAL);
}

process.on("uncaughtException", fatal);
process.on("unhandledRejection", fatal);
dispatch(basename(process.argv[1] ?? "svc"), process.argv.slice(2)).then((code) => process.exit(code), fatal);
