// Asks Remora again and again, and says when it can't be reached.

/** After so long without an answer an attempt is given up. */
const PATIENCE_MS = 4000;

/** One answer; throws if there is none. */
export async function ask(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const answer = await fetch(`dashboard/${path}${query ? `?${query}` : ""}`, {
    cache: "no-store",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!answer.ok) {
    const failed = new Error((await answer.text()).trim());
    failed.status = answer.status;
    throw failed;
  }
  return answer.json();
}

/**
 * Calls `work` again and again, `pause()` milliseconds after its end, while the page can be seen and `wanted()`.
 * What `work` throws goes to `failed`. `now()` of what is returned calls it at once.
 */
export function every(pause, work, { wanted = () => true, failed = () => {} } = {}) {
  let timer = null;
  let running = false;
  let again = false;
  async function run() {
    clearTimeout(timer);
    if (running) {
      again = true;
      return;
    }
    if (document.hidden || !wanted()) return;
    running = true;
    again = false;
    try {
      await work();
    } catch (error) {
      failed(error);
    }
    running = false;
    timer = setTimeout(run, again ? 0 : pause());
  }
  document.addEventListener("visibilitychange", run);
  return { now: run };
}
