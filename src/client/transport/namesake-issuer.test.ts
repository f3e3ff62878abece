import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createConnection } from "node:net";
import t, { type Test } from "tap";
import { makeRequest } from "../../http/request.ts";
import {
  CLIENT_AUTH,
  makeCertificate,
  SERVER_AUTH,
  type TestCertificate,
} from "../../testing/http/test-certificates.ts";
import { readAll } from "../response.ts";
import type { Connector } from "./connector.ts";
import { externalTransport } from "./external-transport.ts";

const subject = [{ O: ["example.com"] }, { CN: ["webhook.shop.svc"] }];
const names = ["localhost"];
const past = new Date("2021-01-01T00:00:00Z");
const authority = {};
const ca = await makeCertificate({ subject, authority, usages: [SERVER_AUTH, CLIENT_AUTH] });

/** The text of the server's response, or the code of the error. */
async function request(
  t: Test,
  server: TestCertificate,
  options: { readonly ca: string; readonly connector?: Connector | undefined },
): Promise<string> {
  let requests = 0;
  const listener = createServer({ cert: server.cert, key: server.key }, (_, response) => {
    requests++;
    response.end("served");
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.teardown(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  await using send = externalTransport({ server: `https://localhost:${port}`, ...options });
  try {
    const response = await send(makeRequest({ method: "POST", path: "/", body: "secret" }));
    return (await readAll(response.body)).toString();
  } catch (error) {
    t.equal(requests, 0, "nothing was sent");
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

t.test("a certificate whose issuer has its own name is accepted when a CA of the bundle signed it", async (t) => {
  const server = await makeCertificate({ subject, issuer: ca, names, usages: [SERVER_AUTH] });
  t.equal(await request(t, server, { ca: ca.cert }), "served");
  const other = await makeCertificate({ subject, authority });
  t.equal(await request(t, server, { ca: other.cert + ca.cert }), "served", "one of two CAs of this name");
  const broken = "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n";
  t.equal(await request(t, server, { ca: other.cert + broken + ca.cert }), "served", "beside a broken one");
  const connector: Connector = async (host, port) => {
    const socket = createConnection({ host, port });
    await once(socket, "connect");
    return socket;
  };
  t.equal(await request(t, server, { ca: ca.cert, connector }), "served", "through a connector");
  const forAny = await makeCertificate({ subject, issuer: ca, names });
  t.equal(await request(t, forAny, { ca: ca.cert }), "served", "without usages");
});

t.test("others are rejected before anything is sent", async (t) => {
  const make = (options: Partial<Parameters<typeof makeCertificate>[0]>) =>
    makeCertificate({ subject, issuer: ca, names, usages: [SERVER_AUTH], ...options });
  const unknown = "DEPTH_ZERO_SELF_SIGNED_CERT";
  const namesake = await makeCertificate({ subject, authority });
  t.equal(await request(t, await make({ issuer: namesake }), { ca: ca.cert }), unknown, "of another CA of this name");
  t.equal(await request(t, namesake, { ca: ca.cert }), unknown, "signed by itself");
  t.equal(await request(t, await make({ usages: [CLIENT_AUTH] }), { ca: ca.cert }), "INVALID_PURPOSE");
  t.equal(await request(t, await make({ notAfter: past }), { ca: ca.cert }), "CERT_HAS_EXPIRED");
  const wrongName = await make({ names: ["example.com"] });
  t.equal(await request(t, wrongName, { ca: ca.cert }), "ERR_TLS_CERT_ALTNAME_INVALID", "of another host");
  for (const [why, options] of [
    ["expired", { authority, notAfter: past }],
    ["for clients", { authority, usages: [CLIENT_AUTH] }],
    ["no CA", {}],
    ["with name constraints", { authority, critical: "2.5.29.30" }],
  ] as const) {
    const issuer = await makeCertificate({ subject, ...options });
    t.equal(await request(t, await make({ issuer }), { ca: issuer.cert }), unknown, `the CA is ${why}`);
  }
});
