// One place for what the page knows, and who wants to hear of it. A view reads a part with `use` and is drawn anew when
// that part is another one.

import { useLayoutEffect, useState } from "preact/hooks";

export function store(value) {
  const heard = new Set();
  const self = {
    get: () => value,
    set(change) {
      const next = { ...value, ...(typeof change === "function" ? change(value) : change) };
      value = next;
      for (const hear of heard) hear();
    },
    listen(hear) {
      heard.add(hear);
      return () => heard.delete(hear);
    },
    use(part = (all) => all) {
      const [seen, see] = useState(() => part(value));
      // Before anything is painted: what changes in between is not missed.
      useLayoutEffect(() => {
        const look = () => see(() => part(value));
        look();
        return self.listen(look);
      }, []);
      return seen;
    },
  };
  return self;
}
