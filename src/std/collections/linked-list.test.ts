import t from "tap";
import { LinkedList } from "./linked-list.ts";

interface Item {
  readonly name: string;
  previous: Item | undefined;
  next: Item | undefined;
}

const create = (name: string): Item => ({ name, previous: undefined, next: undefined });
const namesOf = (list: LinkedList<Item>): string => [...list].map(({ name }) => name).join("");

t.test("a linked list iterates its items in the order of their insertion", async (t) => {
  const list = new LinkedList<Item>();
  for (const name of "abc") list.push(create(name));
  t.equal(namesOf(list), "abc");
  t.equal(list.length, 3);
  t.equal(list.first?.name, "a");
});

t.test("an item is deleted from any position of a linked list, and keeps no neighbours", async (t) => {
  for (const [position, left] of ["bcd", "acd", "abd", "abc"].entries()) {
    const list = new LinkedList<Item>();
    const items = [..."abcd"].map(create);
    for (const item of items) list.push(item);
    const item = items[position]!;
    list.delete(item);
    t.equal(namesOf(list), left);
    t.same([item.previous, item.next], [undefined, undefined]);
    list.push(item);
    t.equal(namesOf(list), left + item.name);
  }
});

t.test("deleting an item that is in no list changes nothing", async (t) => {
  const list = new LinkedList<Item>();
  const item = create("a");
  list.delete(item);
  list.push(item);
  list.delete(create("b"));
  t.equal(namesOf(list), "a");
  list.delete(item);
  list.delete(item);
  t.equal(list.length, 0);
  t.equal(list.first, undefined);
});
