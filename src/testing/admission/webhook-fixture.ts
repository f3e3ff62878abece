/** For tests: a webhook on loopback, behind real TLS. */
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { issueCertificate, makeCa } from "../../auth/pki/certificate-authority.ts";
import { systemClock } from "../../std/time/clock.ts";

const DAYS = 365;

const ca = await makeCa("webhooks", DAYS, systemClock.now());

export const caBundle = Buffer.from(ca.cert).toString("base64");

export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The common name in the certificate of who asks; empty where there is none. */
  readonly client: string;
  // biome-ignore lint/suspicious/noExplicitAny: reviews of every kind are looked into
  readonly review: any;
}

/** What is answered: JSON, or the answer's code and text. `hang` never answers. */
export type Answer = object | "hang" | readonly [status: number, text: string];

export interface TestWebhook extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly asked: Asked[];
  /** Connections that were made to it. */
  readonly connections: () => number;
}

/** It shows a certificate for 127.0.0.1 and for `names`. */
export async function testWebhook(
  answer: (asked: Asked) => Answer | Promise<Answer>,
  names: readonly string[] = [],
): Promise<TestWebhook> {
  const { cert, key } = await issueCertificate(
    ca,
    { commonName: "webhook", usages: ["server"], days: DAYS, alternativeNames: ["127.0.0.1", ...names] },
    systemClock.now(),
  );
  const asked: Asked[] = [];
  let connections = 0;
  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const one = {
      path: incoming.url ?? "",
      headers: incoming.headers,
      client: String((incoming.socket as TLSSocket).getPeerCertificate().subject?.CN ?? ""),
      review: JSON.parse(Buffer.concat(pieces).toString()),
    };
    asked.push(one);
    const answered = await answer(one);
    if (answered === "hang") return;
    const [status, text] = Array.isArray(answered) ? answered : [200, JSON.stringify(answered)];
    outgoing.writeHead(status, { "content-type": "application/json" }).end(text);
  };
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (incoming, outgoing) => {
    respond(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });
  server.on("secureConnection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}/hook`,
    port,
    asked,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** An `AdmissionReview` that says `response` of what was asked. */
export function reviewed({ review }: Pick<Asked, "review">, response: object): object {
  const { apiVersion, kind, request } = review;
  return { apiVersion, kind, response: { uid: request.uid, allowed: true, ...response } };
}

/** With a JSON patch. */
export function patching(asked: Pick<Asked, "review">, operations: readonly object[]): object {
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return reviewed(asked, { patchType: "JSONPatch", patch });
}
