// The connection of a provider: its configuration, and how its requests reach core.
import { warnOfExposure } from "../client/connect.ts";
import type { Api } from "../client/api.ts";
import { configKeys, type Config } from "../client/config.ts";
import { MachinesError } from "../client/errors.ts";
import { identityIn } from "../client/identity.ts";
import { checkConnection } from "../core/previewChecks.ts";
import type { Resource, Values } from "../core/resource.ts";
import { withoutUndefined } from "../core/values.ts";
import type { Caller } from "../core/verbs/index.ts";
import type { Views } from "../core/views.ts";
import { configFrom, configurationChanges, currentConfiguration, isDefaultProvider } from "./configuration.ts";
import type { Host } from "./protocol.ts";
import type { Telling } from "./redaction.ts";
import type { Subject } from "./spelling.ts";
import { ViewServer } from "./views.ts";

/** The connection of one provider; the engine starts a process for every configuration. */
export class Connection {
  readonly #host: Host;
  #cancelled = new AbortController();
  #configured: Config | undefined;
  /** The values that it was read from. */
  #configuration: Values = {};
  /** Whether the engine has named another endpoint or organization than that of the last run. */
  #hasMoved = false;
  /** Whether the engine can read a resource before each diff. */
  canRefreshFirst = false;
  /** Whether the engine knows views. */
  hasViews = false;
  /** Whether this is the provider that the engine makes from the stack's configuration. */
  #isDefault = false;
  /** Whether the program of this run has declared a resource. */
  isDeclaring = false;
  readonly views = new ViewServer();
  /** Whether the requests belong to a state; `pulumi do` has none. */
  hasState = true;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The configuration. @throws MachinesError `configuration` before there is one */
  get config(): Config {
    if (!this.#configured) throw new MachinesError("configuration", "the provider has not been configured");
    return this.#configured;
  }

  get isConfigured(): boolean {
    return this.#configured !== undefined;
  }

  /** Aborts when the engine cancels the run. */
  get signal(): AbortSignal {
    return this.#cancelled.signal;
  }

  /** Compares the configuration of the last run with the next one. */
  compare(olds: Values, news: Values): ReturnType<typeof configurationChanges> {
    const changes = configurationChanges(olds, news);
    this.#hasMoved ||= changes.some(({ moves }) => moves);
    return changes;
  }

  /** Takes the configuration of the next run, and begins it: a provider that was started manually serves several. */
  configure(urn: string | undefined, given: Values): void {
    const { engine, runs } = this.#host;
    const current = isDefaultProvider(urn) ? currentConfiguration() : undefined;
    this.#isDefault = current !== undefined;
    this.#configuration = current ?? given;
    this.#configured = configFrom(this.#configuration);
    this.compare(given, this.#configuration);
    warnOfExposure(this.#configured, (message) => engine.warn("", message));
    // Every explicit provider has a name.
    this.hasState = urn?.endsWith("::") !== true;
    this.#cancelled = new AbortController();
    runs.begin();
    this.views.begin();
    this.isDeclaring = false;
  }

  /**
   * Asks the service whether a configuration works, for `pulumi new`. That hands over no secrets: without a token from elsewhere,
   * there is nothing to ask. The embedded service is not started for it. @throws MachinesError with the reason
   */
  async tryOut(given: Values): Promise<void> {
    const { environment } = configKeys.token;
    const hasToken = given["token"] !== undefined || Boolean(process.env[environment]) || identityIn(process.env);
    if (!hasToken || given["endpoint"] === "local") return;
    this.configure(undefined, given);
    const { current: run } = this.#host.runs;
    const problem = await checkConnection({ api: run.clientFor(this.config, () => undefined), run }, "");
    if (problem !== undefined) throw new MachinesError(problem.code ?? "api", problem.message);
  }

  /** Ends the work of the run. */
  cancel(): void {
    this.#cancelled.abort(
      new MachinesError(
        "cancelled",
        "cancelled: nothing more is sent. Objects that were created are kept in the state, and the next up continues from there.",
      ),
    );
  }

  /** The client until the run is cancelled. @param elsewhere configuration in place of that of the provider */
  api(warn: (message: string) => void, elsewhere?: Values): Api {
    const used = elsewhere ? configFrom({ ...this.#configuration, ...withoutUndefined(elsewhere) }) : this.config;
    const api = this.#host.runs.current.clientFor(used, warn);
    return api.within({ ...api.deadline, signal: this.signal });
  }

  /** How core is called for a request. @param timeoutSeconds 0 without a limit of the engine */
  caller(request: Telling & Subject & { getUrn(): string }, timeoutSeconds = 0, views?: Views): Caller {
    const { engine, wording, runs } = this.#host;
    const urn = request.getUrn();
    const warn = (message: string) => engine.warn(urn, wording(request, message));
    const run = runs.current;
    const config = () => this.config;
    return {
      get api() {
        return run.clientFor(config(), warn);
      },
      run,
      progress: (message) => engine.status(urn, wording(request, message)),
      warn,
      hideSecrets: (text) => wording(request, text),
      note: (message) => engine.note(urn, wording(request, message)),
      signal: this.signal,
      timeoutSeconds: timeoutSeconds > 0 ? timeoutSeconds : undefined,
      views,
      hasMoved: this.#hasMoved,
      // The default provider reads the stack's current one.
      hasStoredConfiguration: !this.#isDefault,
    };
  }

  /**
   * Asks once whether the service can be used, because a preview without changes asks nothing else. Only a provider whose
   * resources a program declares asks: another one may have a token that was replaced. No answer is a warning, because what
   * needs the service fails by itself.
   */
  async requireService(): Promise<void> {
    if (!this.isDeclaring || !this.isConfigured) return;
    const { engine, runs } = this.#host;
    const run = runs.current;
    const problem = await checkConnection({ api: run.clientFor(this.config, () => undefined), run });
    if (problem === undefined || !run.problems.isFirst(problem.message)) return;
    if (!problem.isWarning) throw new MachinesError(problem.code ?? "api", problem.message);
    engine.warn("", problem.message);
  }

  /**
   * Whether to ask the engine to read a resource before each diff. The engine reads with the configuration of the last `up`.
   * Only the default provider knows a newer one: with an explicit provider, an `up` with a new token would fail before it
   * stores the token.
   */
  isRefreshedFirst({ refreshBeforeUpdate }: Resource): boolean {
    return refreshBeforeUpdate && this.canRefreshFirst && this.#isDefault;
  }
}
