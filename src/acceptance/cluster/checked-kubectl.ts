import type { Test } from "tap";
import type { TestCluster } from "./cluster.ts";

/** Runs kubectl with a cluster; a test fails when kubectl does. */
export class CheckedKubectl {
  readonly #t: Test;
  protected readonly cluster: TestCluster;

  constructor(t: Test, cluster: TestCluster) {
    this.#t = t;
    this.cluster = cluster;
  }

  /** `args` are separated by spaces. Resolves with the trimmed output. */
  async run(args: string, input?: string): Promise<string> {
    const { code, stdout, stderr } = await this.cluster.kubectl(args.split(" "), input === undefined ? {} : { input });
    this.#t.equal(code, 0, `kubectl ${args}: ${stderr}`);
    return stdout.trim();
  }
}
