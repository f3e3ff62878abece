import t from "tap";
import { withRequester } from "./requester.ts";

t.test("withRequester() replaces what the client says of itself", async (t) => {
  const user = { name: "jo", uid: "", groups: ["team"], extra: {} };
  const scope = { namespace: "", group: "certificates.svc.io", user, signal: new AbortController().signal };
  const sent = {
    spec: { signerName: "a.b/c", username: "admin", uid: "1", groups: ["system:masters"], extra: { a: [] } },
  };
  t.same(await withRequester(scope, sent as never), {
    spec: { signerName: "a.b/c", username: "jo", groups: ["team"] },
  });
});
