//! Runs the code that ships step by step, and tries every order of the steps of several actors.
//!
//! A step is one access to what actors share: to a cell, a name, a lock, the clock. What an actor does next depends on
//! nothing but the results of its accesses so far. So an actor is the log of these, and to take its next step, its code
//! runs from the beginning with the results of the log, does one access more, and is unwound at the one after that. No
//! thread is needed, and equal states are tried once: see [`search`](crate::search).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::world::{Actor, World, Wrong};

thread_local! {
    static RUN: RefCell<Run> = RefCell::default();
}

/// What an actor does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Next {
    /// An access.
    Access,
    /// It begins, or begins again with what it remembers.
    #[default]
    Idle,
    /// It waits for another one's step.
    Pause,
    /// It waits for a clock that shows another time.
    Wait,
    /// It has ended.
    Done,
}

/// One step of an actor.
struct Run {
    world: World,
    actor: usize,
    /// How many results of the log were used.
    at: usize,
    /// Whether the step was taken, so that what comes now is new.
    is_new: bool,
    /// Which of how many possible results the step has.
    choice: u64,
    choices: u64,
    /// Whether it goes on until it rests.
    is_alone: bool,
}

impl Default for Run {
    fn default() -> Run {
        let world = World::default();
        Run { world, actor: 0, at: 0, is_new: false, choice: 0, choices: 1, is_alone: false }
    }
}

/// How much of a step an access is.
#[derive(Clone, Copy, PartialEq)]
pub enum Access {
    Step,
    Pause,
    /// Part of the step before: of what nobody else sees, or what another access of the same step tells as well.
    Quiet,
}

/// An access, with its result. `what` and `perform` see the world as it is.
pub fn access(
    what: impl FnOnce(&World) -> Access,
    perform: impl FnOnce(&mut World, usize) -> u64,
) -> u64 {
    RUN.with_borrow_mut(|run| {
        let Run { world, actor, at, is_new, is_alone, .. } = run;
        *at += 1;
        if let Some(&result) = world.actors[*actor].log.get(*at - 1) {
            return Ok(result);
        }
        match what(world) {
            Access::Step if *is_new && !*is_alone => return Err(Next::Access),
            Access::Pause if *is_new && !*is_alone => return Err(Next::Pause),
            _ => *is_new = true,
        }
        let result = perform(world, *actor);
        world.actors[*actor].log.push(result);
        if world.is_full { Err(Next::Done) } else { Ok(result) }
    })
    .unwrap_or_else(|next| resume_unwind(Box::new(next)))
}

/// A step with one result.
pub fn step(perform: impl FnOnce(&mut World, usize) -> u64) -> u64 {
    access(|_| Access::Step, perform)
}

/// One of so many. The step goes on with the next access, unless that is a choice, too.
pub fn choose(of: u64) -> u64 {
    RUN.with_borrow_mut(|run| {
        run.at += 1;
        let log = &mut run.world.actors[run.actor].log;
        if let Some(&chosen) = log.get(run.at - 1) {
            return Ok(chosen);
        }
        if run.choices > 1 || run.is_new && !run.is_alone {
            return Err(Next::Access);
        }
        run.choices = of;
        log.push(run.choice);
        Ok(run.choice)
    })
    .unwrap_or_else(|next| resume_unwind(Box::new(next)))
}

/// The number of accesses so far.
pub fn count() -> usize {
    RUN.with_borrow(|run| run.at)
}

/// The actor goes on from where it had so many accesses. What it has seen since then has changed nothing that it knows.
pub fn again(next: Next, since: usize) -> ! {
    RUN.with_borrow_mut(|run| run.world.actors[run.actor].log.truncate(since));
    resume_unwind(Box::new(next))
}

/// What the actor remembers.
pub fn myself<T>(of: impl FnOnce(&mut Actor) -> T) -> T {
    RUN.with_borrow_mut(|run| of(&mut run.world.actors[run.actor]))
}

/// Changes the world as part of the present step.
pub fn effect(change: impl FnOnce(&mut World, usize)) {
    if std::thread::panicking() {
        return;
    }
    RUN.with_borrow_mut(|run| {
        if run.is_new && run.at == run.world.actors[run.actor].log.len() {
            change(&mut run.world, run.actor);
        }
    });
}

/// An actor's next step, or all until it rests.
pub fn run(
    world: World,
    actor: usize,
    choice: u64,
    is_alone: bool,
    code: &dyn Fn(),
) -> (World, u64) {
    RUN.set(Run { world, actor, choice, is_alone, ..Run::default() });
    let next = match catch_unwind(AssertUnwindSafe(code)) {
        Ok(()) => Next::Done,
        Err(thrown) => match thrown.downcast() {
            Ok(next) => *next,
            Err(panicked) => resume_unwind(panicked),
        },
    };
    let Run { mut world, choices, .. } = RUN.take();
    world.note_next(actor, next);
    (world, choices)
}

/// Adds the worlds after an actor's next step, one for each result that this step can have. `code` is what the actor
/// does. An actor may go on between two steps of another one for as often as the world says.
pub fn next(
    world: &World,
    actor: usize,
    code: &dyn Fn(),
    all: &mut Vec<World>,
) -> Result<(), Wrong> {
    let cost = u8::from(world.actors[world.turn].is_held_up() && actor != world.turn);
    let is_able = match world.actors[actor].next {
        Next::Done => false,
        Next::Pause => world.turn != actor,
        Next::Wait => world.actors[actor].waits_at != world.clock,
        _ => true,
    };
    let (mut choice, mut choices) = (0, u64::from(is_able && cost <= world.switches));
    while choice < choices {
        let begun = World { turn: actor, switches: world.switches - cost, ..world.clone() };
        let (after, of) = run(begun, actor, choice, false, code);
        after.wrong.map_or(Ok(()), Err)?;
        all.push(after);
        (choice, choices) = (choice + 1, of);
    }
    Ok(())
}

/// Whether the actor has its next ID, or gives up, when it is left alone and the clock runs.
pub fn goes_on(mut world: World, actor: usize, code: &dyn Fn()) -> bool {
    let wants = world.actors[actor].wants;
    for _ in 0..MOST {
        world = run(world, actor, 0, true, code).0;
        if world.actors[actor].wants < wants || world.is_full {
            return true;
        }
        world.clock += i64::from(world.actors[actor].next == Next::Wait);
    }
    false
}

/// More rests than one actor alone needs to its next ID.
const MOST: usize = 20;
