import t from "tap";
import { singleAuthority } from "./signing-authorities.ts";

t.test("one CA signs for all signers", async (t) => {
  const files = { certFile: "/ca.crt", keyFile: "/ca.key" };
  const { lifetimeMs, ...authorities } = singleAuthority(files, 1000);
  t.equal(lifetimeMs, 1000);
  t.same(authorities, { clients: files, nodeClients: files, nodeServing: files, legacy: files });
});
