use flowstart_lab::plan::*; use flowstart_lab::run::*; use flowstart_lab::spec::*; use flowstart_lab::spec::link::Link; use std::path::Path; use flowstart_sim::trace::Event;
fn main(){ let a:Vec<String>=std::env::args().collect();
 let links=vec![Link::parse("l",&a[1],Path::new(".")).unwrap()]; let transport=transport::Transport::parse("t",a.get(5).map_or("model-quic:profile=gquic",|s|s)).unwrap();
 let schemes=vec![scheme("s",&a[3],&transport.profile.startup).unwrap()]; let av=avoidance("a","cubic",&transport.profile.avoidance).unwrap(); let comp=competitor::Competitor::parse("c","bulk",&transport.profile).unwrap();
 let plan=Plan{links,aqms:vec![aqm("q","taildrop").unwrap()],sizes:vec![Written{text:a[2].clone(),value:a[2].parse().unwrap()}],schemes,avoidance:av,competitors:vec![comp],transport,flows:1,reps:30,seed:1,hint:true};
 let rep:u32=a[4].parse().unwrap(); let s=plan.settings()[0]; let w=warm_up(&plan,s,rep); let c=plan.cells()[0]; let mut f=newcomers(&plan,&w,&c,true); let o=outcomes(&plan,&c,&mut f); println!("{:?}",o[0]);
 let t0=f.start.as_secs(); let bins=20.0; let mut sent=std::collections::BTreeMap::<i64,[f64;12]>::new();
 for e in &f.world.network.trace.as_ref().unwrap().entries { let b=((e.time.as_secs()-t0)*1000.0/bins) as i64; let r=sent.entry(b).or_default(); let me=e.flow==f.flows[0];
  match e.event { Event::Sent{retransmission,..} if me => {r[0]+=1.0; if retransmission {r[1]+=1.0}}, Event::Received{..} if me=>r[2]+=1.0, Event::DeclaredLost{..} if me=>r[3]+=1.0, Event::Dropped{..} if me=>r[4]+=1.0, Event::Dropped{..}=>r[5]+=1.0, Event::Departed{..} if !me=>r[6]+=1.0, Event::Window{cwnd,in_flight,ssthresh,srtt_nanos,..} if me=>{r[7]=cwnd.get() as f64/1350.0;r[8]=in_flight.get() as f64/1350.0;r[9]=ssthresh.get() as f64/1350.0; r[11]=srtt_nanos as f64/1e6}, Event::Queue{packets,..}=>r[10]=packets as f64, Event::TimerFired if me=>println!("timer {:.1}",(e.time.as_secs()-t0)*1000.0), Event::Decided(d) if me=>println!("{:.1} {:?}",(e.time.as_secs()-t0)*1000.0,d), _=>{} } }
 println!("ms sent re rcvd decl drop | odrop odep | cwnd infl ssth q srtt");
 for (b,r) in sent { println!("{:5} {:4} {:4} {:4} {:4} {:4} | {:4} {:4} | {:6.0} {:6.0} {:6.0} {:4} {:.0}",b as f64*bins,r[0],r[1],r[2],r[3],r[4],r[5],r[6],r[7],r[8],r[9].min(99999.0),r[10],r[11]); }
}
