import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { parseForwardRule } from "./forward-rule.ts";
import { UpstreamServers } from "./upstream-servers.ts";

function start(...rules: readonly string[]) {
  const clock = new FakeClock();
  const file = { addresses: ["192.0.2.1", "10.96.0.10", "2001:db8::1"], reads: 0 };
  const servers = new UpstreamServers({
    rules: rules.map((text) => parseForwardRule(text)!),
    readResolvers: async () => {
      file.reads++;
      return file.addresses;
    },
    ownAddresses: ["10.96.0.10"],
    clock,
  });
  const of = async (name: string) => (await servers.of(name)).map(({ address }) => address);
  return { clock, file, of };
}

t.test("UpstreamServers chooses the servers of the longest domain", async (t) => {
  const { of } = start("192.0.2.53", "example=192.0.2.2", "corp.example=192.0.2.3", "corp.example=192.0.2.4");
  t.same(await of("a.b.corp.example"), ["192.0.2.3", "192.0.2.4"]);
  t.same(await of("corp.example"), ["192.0.2.3", "192.0.2.4"]);
  t.same(await of("xcorp.example"), ["192.0.2.2"]);
  t.same(await of("example.com"), ["192.0.2.53"]);
  t.same(await of(""), ["192.0.2.53"]);
});

t.test("UpstreamServers reads the node's file again after a while, and leaves out its own address", async (t) => {
  const { clock, file, of } = start("corp.example=192.0.2.3");
  const [first, second] = await Promise.all([of("a.example"), of("b.example")]);
  t.same([first, second], [file.addresses.toSpliced(1, 1), file.addresses.toSpliced(1, 1)]);
  file.addresses = ["192.0.2.9"];
  t.same(await of("a.example"), ["192.0.2.1", "2001:db8::1"]);
  t.equal(file.reads, 1);
  await clock.advance(5000);
  t.same(await of("a.example"), ["192.0.2.9"]);
});
