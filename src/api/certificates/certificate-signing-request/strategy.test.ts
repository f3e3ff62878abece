import t from "tap";
import type { CertificateSigningRequest } from "./schema.ts";
import { setRequester } from "./strategy.ts";

t.test("setRequester() replaces the user that the client sent", (t) => {
  const requested = { request: "", signerName: "a.b/c", usages: ["client auth"] };
  const claimed = { username: "admin", uid: "1", groups: ["system:masters"], extra: { a: [] } };
  const sent = { spec: { ...requested, ...claimed } } as CertificateSigningRequest;
  t.same(setRequester(sent, { name: "jo", uid: "", groups: ["team"], extra: {} }), {
    spec: { ...requested, username: "jo", groups: ["team"] },
  });
  t.end();
});
