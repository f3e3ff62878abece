import t from "tap";
import { NodeIps } from "./node-ips.ts";

t.test("NodeIps.refresh() reads the host's address again, and keeps the last one when there is none", async (t) => {
  let found = "127.0.0.1";
  const ips = await NodeIps.open([], async () => found);
  t.same(ips.current, ["127.0.0.1"]);
  for (const [next, known] of [
    ["192.0.2.1", "192.0.2.1"],
    ["198.51.100.7", "198.51.100.7"],
    ["127.0.0.1", "198.51.100.7"],
  ] as const) {
    found = next;
    t.same(await ips.refresh(), [known]);
    t.same(ips.current, [known]);
  }
});

t.test("NodeIps returns configured addresses unchanged", async (t) => {
  const ips = await NodeIps.open(["192.0.2.9"], async () => "192.0.2.1");
  t.same(await ips.refresh(), ["192.0.2.9"]);
});
