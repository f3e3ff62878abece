/** iproute2 on a host whose interface eth0 is in the network of all other nodes. Nothing that is set is kept. */
import type { RouteTools } from "../../pod-network/programs.ts";

/** Adds the commands that change something to `commands`. */
export function createFakeRouteTools(commands: string[]): RouteTools {
  const answer = (line: string): unknown => {
    const [, address] = /^route get (\S+)$/.exec(line) ?? [];
    if (address !== undefined) return [{ dst: address, dev: "eth0" }];
    if (line === "link show dev eth0") {
      return [{ ifname: "eth0", flags: ["BROADCAST", "UP"], mtu: 1500, link_type: "ether" }];
    }
    if (/ show\b/.test(line)) return [];
    commands.push(line);
    return undefined;
  };
  const run = async (lines: readonly string[]) => {
    const answers = lines.map(answer).filter((each) => each !== undefined);
    return { stdout: answers.map((each) => `${JSON.stringify(each)}\n`).join(""), stderr: "" };
  };
  return {
    ip: run,
    bridge: run,
    monitor: () => {
      throw new Error("There is no program ip");
    },
  };
}
