import t from "tap";
import { createNft } from "./nft.ts";

t.test("a transaction that fails rejects with the program's output", async (t) => {
  await t.rejects(createNft("/nowhere/nft").apply(""), /^Cannot run \/nowhere\/nft: /);
  await t.rejects(createNft("false").apply("x"), /false -f - failed \(1\)/);
  await createNft("true").apply("x");
  t.equal(await createNft("echo").listSets?.("ip"), "-j list sets ip\n");
});
