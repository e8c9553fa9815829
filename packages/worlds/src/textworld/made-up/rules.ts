/**
 * The rules of the made-up games, in TextWorld's logic language. Their events are what the player
 * reads.
 */
import { parseLogic } from "../logic.js";

/** P: player, I: inventory, r: room, x: direction, d: door, c: container, w: oven, s: supporter,
 * v: stove, o: what can be carried, f: food, k: key, n: knife, b: cookbook. */
const TEXT = `
type r { } type x { } type d { } type b { }
type c { } type w : c { } type s { } type v : s { }
type o { } type f : o { } type k : o { } type n : o { }
type P {
  rules {
    look :: at(P, r) -> at(P, r);
    inventory :: at(P, r) -> at(P, r);
    go :: at(P, r) & $exit(r, x, r') & $free(r, r') -> at(P, r');
    door/unlock :: $at(P, r) & $door(r, d, r') & locked(d) & $fits(k, d) & $in(k, I) -> closed(d);
    door/open :: $at(P, r) & $door(r, d, r') & closed(d) -> open(d) & free(r, r') & free(r', r);
    door/close :: $at(P, r) & $door(r, d, r') & open(d) & free(r, r') & free(r', r) -> closed(d);
    unlock :: $at(P, r) & $at(c, r) & locked(c) & $fits(k, c) & $in(k, I) -> closed(c);
    open :: $at(P, r) & $at(c, r) & closed(c) -> open(c);
    close :: $at(P, r) & $at(c, r) & open(c) -> closed(c);
    take :: $at(P, r) & at(o, r) -> in(o, I);
    take/from/c :: $at(P, r) & $at(c, r) & $open(c) & in(o, c) -> in(o, I);
    take/from/s :: $at(P, r) & $at(s, r) & on(o, s) -> in(o, I);
    drop :: $at(P, r) & in(o, I) -> at(o, r);
    insert :: $at(P, r) & $at(c, r) & $open(c) & in(o, I) -> in(o, c);
    put :: $at(P, r) & $at(s, r) & in(o, I) -> on(o, s);
    eat :: in(f, I) -> eaten(f);
    chop :: $in(f, I) & $in(n, I) & uncut(f) -> chopped(f);
    dice :: $in(f, I) & $in(n, I) & uncut(f) -> diced(f);
    slice :: $in(f, I) & $in(n, I) & uncut(f) -> sliced(f);
    fry :: $at(P, r) & $at(v, r) & $in(f, I) & raw(f) -> fried(f);
    roast :: $at(P, r) & $at(w, r) & $in(f, I) & raw(f) -> roasted(f);
    read :: $at(P, r) & $at(b, r) -> read(b);
  }
  inform7 { commands {
    look :: "look" :: "You look around.";
    inventory :: "inventory" :: "You look at what you carry.";
    go :: "go {x}" :: "You go {x}.";
    door/unlock :: "unlock {d} with {k}" :: "You unlock the {d} with the {k}.";
    door/open :: "open {d}" :: "You open the {d}.";
    door/close :: "close {d}" :: "You close the {d}.";
    unlock :: "unlock {c} with {k}" :: "You unlock the {c} with the {k}.";
    open :: "open {c}" :: "You open the {c}.";
    close :: "close {c}" :: "You close the {c}.";
    take :: "take {o}" :: "You pick up the {o}.";
    take/from/c :: "take {o} from {c}" :: "You take the {o} from the {c}.";
    take/from/s :: "take {o} from {s}" :: "You take the {o} from the {s}.";
    drop :: "drop {o}" :: "You drop the {o}.";
    insert :: "insert {o} into {c}" :: "You lay the {o} into the {c}.";
    put :: "put {o} on {s}" :: "You put the {o} on the {s}.";
    eat :: "eat {f}" :: "You eat the {f}.";
    chop :: "chop {f} with {n}" :: "You chop the {f} with the {n}.";
    dice :: "dice {f} with {n}" :: "You dice the {f} with the {n}.";
    slice :: "slice {f} with {n}" :: "You slice the {f} with the {n}.";
    fry :: "cook {f} with {v}" :: "You fry the {f} on the {v}.";
    roast :: "cook {f} with {w}" :: "You roast the {f} in the {w}.";
    read :: "read {b}" :: "You read the {b}.";
  } }
}`;

/** What can be done in every made-up game. */
export const rules = parseLogic("the rules of made-up games", TEXT);

/** How food is cut, and how it is cooked, with the command for each. */
export const CUTS = { chopped: "chop", diced: "dice", sliced: "slice" } as const;
export const HEATS = { fried: "stove", roasted: "oven" } as const;
export type Cut = keyof typeof CUTS;
export type Heat = keyof typeof HEATS;
