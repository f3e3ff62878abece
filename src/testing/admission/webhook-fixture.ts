/** An admission webhook for tests, on loopback with TLS. */
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { systemClock } from "../../std/time/clock.ts";

const DAYS = 365;

const ca = await createCa("webhooks", DAYS, systemClock.now());

export const caBundle = Buffer.from(ca.cert).toString("base64");

export interface ReceivedReview {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The common name of the client certificate; empty if there is none. */
  readonly client: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests read reviews of all kinds
  readonly review: any;
}

/** The response: JSON, or a status code and text. `hang` sends no response. */
export type WebhookAnswer = object | "hang" | readonly [status: number, text: string];

export interface TestWebhook extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly received: ReceivedReview[];
  /** The number of connections that clients opened. */
  readonly connections: () => number;
}

/** Serves a certificate for 127.0.0.1 and for `names`. */
export async function startTestWebhook(
  answer: (review: ReceivedReview) => WebhookAnswer | Promise<WebhookAnswer>,
  names: readonly string[] = [],
): Promise<TestWebhook> {
  const { cert, key } = await issueCertificate(
    ca,
    { commonName: "webhook", usages: ["server"], days: DAYS, alternativeNames: ["127.0.0.1", ...names] },
    systemClock.now(),
  );
  const reviews: ReceivedReview[] = [];
  let connections = 0;
  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const review = {
      path: incoming.url ?? "",
      headers: incoming.headers,
      client: String((incoming.socket as TLSSocket).getPeerCertificate().subject?.CN ?? ""),
      review: JSON.parse(Buffer.concat(chunks).toString()),
    };
    reviews.push(review);
    const response = await answer(review);
    if (response === "hang") return;
    const [status, text] = Array.isArray(response) ? response : [200, JSON.stringify(response)];
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
    received: reviews,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** An `AdmissionReview` with this response. */
export function reviewResponse({ review }: Pick<ReceivedReview, "review">, response: object): object {
  const { apiVersion, kind, request } = review;
  return { apiVersion, kind, response: { uid: request.uid, allowed: true, ...response } };
}

/** A response with a JSON patch. */
export function patchResponse(received: Pick<ReceivedReview, "review">, operations: readonly object[]): object {
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return reviewResponse(received, { patchType: "JSONPatch", patch });
}
