import t from "tap";
import type { Authenticator, UserInfo } from "../user.ts";
import { anonymousAuthenticator } from "./anonymous.ts";
import { Refusal } from "./invalid-credentials-error.ts";
import { unionAuthenticator } from "./union.ts";

const user: UserInfo = { name: "me", uid: "", groups: ["g"], extra: {} };
const knows: Authenticator = async () => user;
const abstains: Authenticator = async () => undefined;
const refuses: Authenticator = async () => {
  throw new Refusal("bad");
};
const anonymous = anonymousAuthenticator();
const none = { certificates: [] };
const refused = { name: "StatusError" };

t.test("unionAuthenticator() takes the first user and makes it an authenticated one", async (t) => {
  const authenticate = unionAuthenticator([abstains, knows, refuses]);
  const found = await authenticate(none);
  t.match(found, { name: "me", groups: ["g", "system:authenticated"] });
  t.equal(await authenticate(none), found, "the same value every time");
  t.match(await unionAuthenticator([refuses, knows])(none), { name: "me" }, "another may know better");
});

t.test("unionAuthenticator() makes nobody anonymous who offered bad credentials", async (t) => {
  t.match(await unionAuthenticator([abstains], anonymous)(none), {
    name: "system:anonymous",
    groups: ["system:unauthenticated"],
  });
  await t.rejects(async () => unionAuthenticator([refuses, abstains], anonymous)(none), refused);
  await t.rejects(
    async () => unionAuthenticator([abstains], anonymous)({ ...none, authorization: "Bearer x" }),
    refused,
  );
  t.match(await unionAuthenticator([abstains], anonymous)({ ...none, authorization: "Basic x" }), {
    name: "system:anonymous",
  });
  t.equal(await unionAuthenticator([abstains])(none), undefined);
});

t.test("unionAuthenticator() lets failures through that say nothing about the credentials", async (t) => {
  const broken: Authenticator = async () => {
    throw new Error("the disk is gone");
  };
  await t.rejects(async () => unionAuthenticator([broken, knows])(none), { message: "the disk is gone" });
});

t.test("anonymousAuthenticator() keeps to its paths", async (t) => {
  const authenticate = anonymousAuthenticator({ paths: ["/livez"] });
  t.match(await authenticate({ ...none, path: "/livez" }), { name: "system:anonymous" });
  for (const path of ["/livez/", "/readyz", undefined]) t.equal(await authenticate({ ...none, path }), undefined);
});
