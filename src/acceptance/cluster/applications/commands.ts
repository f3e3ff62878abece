/** kubectl and other programs that use a cluster. */
import type { Test } from "tap";
import { type CommandResult, command, type TestCluster } from "../cluster.ts";

export class Commands {
  readonly #cluster: TestCluster;
  readonly #t: Test;
  readonly #namespace: string;

  constructor(t: Test, cluster: TestCluster, namespace = "default") {
    this.#t = t;
    this.#cluster = cluster;
    this.#namespace = namespace;
  }

  /** Runs kubectl with words separated by spaces, or as they are. Expects success; resolves with stdout. */
  async kubectl(args: string | readonly string[], input?: string): Promise<string> {
    const { code, stdout, stderr } = await this.tryKubectl(args, input);
    this.#t.equal(code, 0, `kubectl ${wordsOf(args).join(" ")}${code === 0 ? "" : `: ${stderr}${stdout}`}`);
    return stdout;
  }

  tryKubectl(args: string | readonly string[], input?: string): Promise<CommandResult> {
    const words = ["--namespace", this.#namespace, ...wordsOf(args)];
    return this.#cluster.kubectl(words, input === undefined ? {} : { input });
  }

  /** Expects success; resolves with stdout. */
  async run(program: string, args: string): Promise<string> {
    const { code, stdout, stderr } = await this.tryRun(program, args);
    this.#t.equal(code, 0, `${args}${code === 0 ? "" : `: ${stderr}${stdout}`}`);
    return stdout;
  }

  tryRun(program: string, args: string): Promise<CommandResult> {
    return command(program, ["--namespace", this.#namespace, ...wordsOf(args)], { env: this.#cluster.env });
  }

  /** The value that a JSONPath selects. */
  async value(what: string, path: string): Promise<string> {
    return await this.kubectl(`get ${what} -o jsonpath={${path}}`);
  }
}

function wordsOf(args: string | readonly string[]): readonly string[] {
  return typeof args === "string" ? args.split(" ") : args;
}
