// One conversation on this page: its turns, those that are on their way followed, and questions put into it.
//
// It outlives what is drawn: a component subscribes to it. Another tab tells over a channel that something was asked.
import { ask, asRefusal, type Refusal } from "./api.ts";
import { keep } from "./draft.ts";
import { type Begin, follow } from "./follow.ts";
import { beginning, recorded, type TurnView, told } from "./turn_view.ts";
import type { CarriedFact, ConversationPage, Opinion } from "./wire.ts";

const PAGE = 30;

export class OpenConversation {
  turns: TurnView[] = [];
  title = "";
  /** How many turns stand before the first one here. */
  earlier = 0;
  refusal: Refusal | null = null;
  /** What goes on with the agent since it was started over; null after the next question. */
  carried: CarriedFact[] | null = null;
  private readonly ended = new AbortController();
  private readonly channel = new BroadcastChannel("sentinel-conversations");
  private readonly followed = new Set<string>();
  private refreshing = false;
  /** Over once every question that was put here has begun or was refused. */
  private before: Promise<void> = Promise.resolve();

  constructor(
    public id: string | null,
    private readonly changed: () => void,
    /** Called with the id that a new conversation is given. */
    private readonly began: (id: string) => void,
    /** What each question is sent with: workspace, time zone, length of the answer. */
    private readonly options: () => Record<string, string>,
  ) {
    this.channel.onmessage = (message) => {
      if (message.data === this.id) {
        void this.refresh();
      }
    };
    document.addEventListener("visibilitychange", this.seen);
    void this.refresh();
  }

  /** Stop to follow. Questions that have not begun are kept for the box. */
  close(): void {
    this.ended.abort();
    for (const turn of this.turns.filter((turn) => turn.state === "running" && turn.turnId === "")) {
      keep(turn.question);
    }
    this.channel.close();
    document.removeEventListener("visibilitychange", this.seen);
  }

  /** The newest turn that is on its way. */
  get running(): TurnView | undefined {
    return this.turns.findLast((turn) => turn.state === "running");
  }

  /** Ask `question`, after those before it have begun: they may give this conversation its id, and stand first in it. */
  put(question: string): void {
    const requestId = crypto.getRandomValues(new Uint32Array(4)).join("-");
    const asked = { ...this.options(), message: question, request_id: requestId };
    this.carried = null;
    this.turns = [...this.turns, beginning(requestId, question, performance.now())];
    this.changed();
    const before = this.before;
    this.before = new Promise((begun) => {
      void before.then(() => {
        const put = this.id === null ? asked : { ...asked, session_id: this.id };
        void this.follow(requestId, { question: put }, begun).finally(begun);
      });
    });
  }

  /** Show that it has another title, or was started over. */
  now(what: { title?: string; carried?: CarriedFact[] }): void {
    this.title = what.title ?? this.title;
    this.carried = what.carried ?? this.carried;
    this.changed();
  }

  /** Show what the person thought of an answer, once it is kept. */
  thought(key: string, opinion: Opinion | null): void {
    this.change(key, (view) => ({ ...view, opinion }));
  }

  async stop(turn: TurnView): Promise<void> {
    await this.orTell(() => ask("DELETE", `/turns/${encodeURIComponent(turn.turnId)}`));
  }

  async showEarlier(): Promise<void> {
    const from = Math.max(0, this.earlier - PAGE);
    await this.orTell(() => this.load(from, this.earlier - from));
  }

  /** Load what is not here yet, from another tab or from before this page. */
  async refresh(): Promise<void> {
    if (this.id === null || this.refreshing) {
      return;
    }
    this.refreshing = true;
    await this.orTell(async () => {
      if (this.turns.length === 0) {
        const { turns } = await this.page(0, 1);
        this.earlier = Math.max(0, turns - PAGE);
      }
      const last = Math.max(this.earlier, ...this.turns.map((turn) => turn.number));
      await this.load(last, 200);
    });
    this.refreshing = false;
  }

  private readonly seen = (): void => {
    if (document.visibilityState === "visible") {
      void this.refresh();
    }
  };

  private async load(after: number, limit: number): Promise<void> {
    const page = await this.page(after, limit);
    this.title = page.title;
    this.earlier = Math.min(this.earlier, after);
    const known = new Set(this.turns.map((turn) => turn.turnId));
    const loaded = page.items.filter((turn) => !known.has(turn.turn_id) && !this.own(turn.request_id));
    const views = loaded.map((turn) => recorded(turn, performance.now()));
    this.turns = [...this.turns, ...views].sort(byNumber);
    this.changed();
    for (const view of views.filter((view) => view.state === "running")) {
      void this.follow(view.key, { turnId: view.turnId });
    }
  }

  private async orTell(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.tell(null);
    } catch (error) {
      if (!this.ended.signal.aborted) {
        this.tell(asRefusal(error));
      }
    }
  }

  private page(after: number, limit: number): Promise<ConversationPage> {
    const path = `/conversations/${encodeURIComponent(this.id ?? "")}?after=${after}&limit=${limit}`;
    return ask<ConversationPage>("GET", path, undefined, this.ended.signal);
  }

  private own(requestId: string | null): boolean {
    return requestId !== null && this.followed.has(requestId);
  }

  /** `begun` is called once the turn has its place in a conversation. */
  private async follow(key: string, begin: Begin, begun = (): void => {}): Promise<void> {
    if (this.followed.has(key) || this.ended.signal.aborted) {
      return;
    }
    this.followed.add(key);
    const connection = (connected: boolean): void => this.change(key, (view) => ({ ...view, connected }));
    try {
      for await (const event of follow(begin, connection, this.ended.signal)) {
        this.change(key, (view) => told(view, event, performance.now()));
        if (event.type === "started") {
          this.named(String(event.data.session_id));
          begun();
        }
      }
    } catch (error) {
      const { status, detail, nextStep } = asRefusal(error);
      const unsent = this.turns.find((turn) => turn.key === key && turn.turnId === "");
      if (status === 401 && unsent !== undefined && !this.ended.signal.aborted) {
        keep(unsent.question);
      }
      this.change(key, (view) => ({ ...view, state: "failed", status: "", problem: `${detail} ${nextStep}` }));
    }
  }

  private named(id: string): void {
    if (this.id === null) {
      this.id = id;
      this.began(id);
    }
    this.channel.postMessage(this.id);
  }

  private change(key: string, how: (view: TurnView) => TurnView): void {
    this.turns = this.turns.map((turn) => (turn.key === key ? how(turn) : turn));
    this.changed();
  }

  private tell(refusal: Refusal | null): void {
    this.refusal = refusal;
    this.changed();
  }
}

function byNumber(one: TurnView, other: TurnView): number {
  return (one.number || Number.MAX_SAFE_INTEGER) - (other.number || Number.MAX_SAFE_INTEGER);
}
