import { PassThrough } from "node:stream";
import t from "tap";
import { MessageSocket } from "./message-socket.ts";

function masked(first: number, payload: string): Buffer {
  return Buffer.concat([Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0]), Buffer.from(payload)]);
}

/** Plays the client's frames; resolves with what it gets, in hex, and the messages that the handler got. */
async function play(frames: readonly Buffer[], accept: (text: string) => boolean) {
  const received = PassThrough.from(frames);
  const socket = new MessageSocket(received);
  const messages: string[] = [];
  const running = socket.run({
    data: async ({ data }) => {
      messages.push(data.toString());
      await socket.send("binary", data);
      return accept(data.toString());
    },
  });
  const sent: Uint8Array[] = [];
  for await (const chunk of socket.body) sent.push(chunk);
  await running;
  return { sent: Buffer.concat(sent).toString("hex"), messages };
}

t.test("messages and pings are answered until the client closes", async (t) => {
  const frames = [masked(0x82, "a"), masked(0x89, "p"), masked(0x8a, "q"), masked(0x88, ""), masked(0x82, "late")];
  t.same(await play(frames, () => true), { sent: "820161" + "8a0170" + "880203e8", messages: ["a"] });
});

t.test("a handler that returns false, and the end of the connection, end it with a close frame", async (t) => {
  t.same(await play([masked(0x82, "a"), masked(0x82, "b")], () => false), { sent: "820161880203e8", messages: ["a"] });
  t.same(await play([], () => true), { sent: "880203e8", messages: [] });
});

t.test("a violation ends it with code 1002", async (t) => {
  t.same(await play([Buffer.from([0x82, 0])], () => true), { sent: "880203ea", messages: [] });
});
