import { join } from "node:path";
import t from "tap";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { defaultConfig } from "../config/default-config.ts";
import { openAuthenticators } from "./authenticators.ts";

const none = { ...defaultConfig.authentication, anonymous: false };
const deps = { clock: systemClock, random: systemRandom, log: silentLogger, findBoundObject: async () => undefined };

t.test("openAuthenticators() rejects with the flag and the file that cannot be read", async (t) => {
  const missing = join(t.testdir({}), "missing");
  await t.rejects(openAuthenticators({ ...none, clientCaFile: missing }, deps), {
    message: `Cannot read --client-ca-file="${missing}": there is no such file`,
  });
  await t.rejects(openAuthenticators({ ...none, tokenFile: missing }, deps), {
    message: `Cannot read --token-auth-file="${missing}": there is no such file`,
  });
});

t.test("openAuthenticators() authenticates the tokens of the token file and loopback tokens", async (t) => {
  const directory = t.testdir({ tokens: "secret,ann,1,shop\n" });
  await using identities = await openAuthenticators({ ...none, tokenFile: join(directory, "tokens") }, deps);
  const { authenticate, loopbackToken } = identities;
  const authenticateToken = (token: string) => authenticate({ certificates: [], authorization: `Bearer ${token}` });
  t.match(await authenticateToken("secret"), { name: "ann", groups: ["shop", "system:authenticated"] });
  const token = loopbackToken({ name: "system:kube-scheduler", uid: "", groups: [], extra: {} });
  t.match(await authenticateToken(token), { name: "system:kube-scheduler" });
});
