/** Network namespaces on one bridge of this host, between which packets can be dropped. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";

export interface NetworkNamespace {
  readonly address: string;
  /** The beginning of a command that runs a program in the namespace. */
  readonly enter: readonly string[];
}

/** Why there can be no namespaces here; undefined when there can. */
export function findNamespaceProblem(): string | undefined {
  if (process.getuid?.() !== 0) return "network namespaces need root";
  try {
    execFileSync("ip", ["-V"], { stdio: "ignore" });
    execFileSync("iptables", ["--version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "ip or iptables is not on the PATH";
  }
}

export class NetworkNamespaces implements Disposable {
  readonly #bridge = `svch${randomBytes(3).toString("hex")}`;
  readonly #prefix = `10.${100 + (randomBytes(1)[0]! % 50)}.${randomBytes(1)[0]!}`;
  readonly #names: string[] = [];

  constructor() {
    run("ip", "link", "add", this.#bridge, "type", "bridge");
    run("ip", "addr", "add", `${this.#prefix}.1/24`, "dev", this.#bridge);
    run("ip", "link", "set", this.#bridge, "up");
  }

  add(): NetworkNamespace {
    const index = this.#names.length;
    const name = `${this.#bridge}-${index}`;
    const link = `${this.#bridge}${index}`;
    const address = `${this.#prefix}.${index + 10}`;
    const enter = ["nsenter", `--net=/run/netns/${name}`];
    run("ip", "netns", "add", name);
    this.#names.push(name);
    run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name);
    run("ip", "link", "set", link, "master", this.#bridge, "up");
    for (const words of [
      ["link", "set", "lo", "up"],
      ["addr", "add", `${address}/24`, "dev", "eth0"],
      ["link", "set", "eth0", "up"],
    ])
      run(...enter, "ip", ...words);
    return { address, enter };
  }

  /** Drops the packets between a namespace and others, until `heal`. */
  cut({ enter }: NetworkNamespace, others: readonly NetworkNamespace[]): void {
    const addresses = others.map(({ address }) => address).join();
    run(...enter, "iptables", "-A", "INPUT", "-s", addresses, "-j", "DROP");
    run(...enter, "iptables", "-A", "OUTPUT", "-d", addresses, "-j", "DROP");
  }

  heal({ enter }: NetworkNamespace): void {
    run(...enter, "iptables", "-F");
  }

  [Symbol.dispose](): void {
    for (const name of this.#names) run("ip", "netns", "delete", name);
    run("ip", "link", "delete", this.#bridge);
  }
}

function run(...[program = "", ...words]: readonly string[]): void {
  execFileSync(program, words, { stdio: ["ignore", "ignore", "inherit"] });
}
