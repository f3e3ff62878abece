import t from "tap";
import type { Authenticator, UserInfo } from "../user.ts";
import { anonymousAuthenticator } from "./anonymous.ts";
import { InvalidCredentialsError } from "./invalid-credentials-error.ts";
import { unionAuthenticator } from "./union.ts";

const user: UserInfo = { name: "me", uid: "", groups: ["g"], extra: {} };
const accepts: Authenticator = async () => user;
const abstains: Authenticator = async () => undefined;
const rejects: Authenticator = async () => {
  throw new InvalidCredentialsError("bad");
};
const anonymous = anonymousAuthenticator();
const none = { certificates: [] };
const unauthorized = { name: "StatusError" };

t.test("unionAuthenticator() returns the first user and adds the group system:authenticated", async (t) => {
  const authenticate = unionAuthenticator([abstains, accepts, rejects]);
  const found = await authenticate(none);
  t.match(found, { name: "me", groups: ["g", "system:authenticated"] });
  t.equal(await authenticate(none), found, "the same value every time");
  t.match(await unionAuthenticator([rejects, accepts])(none), { name: "me" }, "a later authenticator may succeed");
});

t.test("unionAuthenticator() rejects invalid credentials instead of treating the user as anonymous", async (t) => {
  t.match(await unionAuthenticator([abstains], anonymous)(none), {
    name: "system:anonymous",
    groups: ["system:unauthenticated"],
  });
  await t.rejects(async () => unionAuthenticator([rejects, abstains], anonymous)(none), unauthorized);
  await t.rejects(
    async () => unionAuthenticator([abstains], anonymous)({ ...none, authorization: "Bearer x" }),
    unauthorized,
  );
  t.match(await unionAuthenticator([abstains], anonymous)({ ...none, authorization: "Basic x" }), {
    name: "system:anonymous",
  });
  t.equal(await unionAuthenticator([abstains])(none), undefined);
});

t.test("unionAuthenticator() passes on errors that are not about the credentials", async (t) => {
  const broken: Authenticator = async () => {
    throw new Error("the disk is gone");
  };
  await t.rejects(async () => unionAuthenticator([broken, accepts])(none), { message: "the disk is gone" });
});

t.test("anonymousAuthenticator() authenticates only its paths", async (t) => {
  const authenticate = anonymousAuthenticator({ paths: ["/livez"] });
  t.match(await authenticate({ ...none, path: "/livez" }), { name: "system:anonymous" });
  for (const path of ["/livez/", "/readyz", undefined]) t.equal(await authenticate({ ...none, path }), undefined);
});
